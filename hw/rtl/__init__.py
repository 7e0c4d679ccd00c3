"""BI-Sort as gateware (PanJoin IV): one component to a file, streams everywhere."""
