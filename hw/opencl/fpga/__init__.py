"""The engines as single-work-item kernels joined by channels: PanJoin's FPGA design."""
