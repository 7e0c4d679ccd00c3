"""Results and stars as plain events: what collection trees, punctuators and combiners should say.

An event is STAR or what stands between stars.
"""

__all__ = ["STAR", "command_events", "context_of", "events_of", "results_of", "tagged", "tokens_of"]

STAR = "*"


def events_of(tokens):
    """Punctuated tokens (as dicts) one event after the other."""
    events = []
    for token in tokens:
        assert token["stars"] or token["present"], "a token has stars or data"
        events += [STAR] * token["stars"]
        if token["present"]:
            events.append(token["data"])
    return events


def tokens_of(events, most, ordered=0, empty=0):
    """Events as tokens; runs of stars up to `most` ride on the result behind them."""
    tokens, stars = [], 0
    for event in events:
        if event == STAR:
            stars += 1
            if stars == most:
                tokens.append({"stars": stars, "present": 0, "data": empty, "ordered": ordered})
                stars = 0
        else:
            tokens.append({"stars": stars, "present": 1, "data": event, "ordered": ordered})
            stars = 0
    if stars:
        tokens.append({"stars": stars, "present": 0, "data": empty, "ordered": ordered})
    return tokens


def context_of(probe, side, star_every=0, ordered=0):
    return {"probe": probe, "side": side, "star_every": star_every, "ordered": ordered}


def results_of(context, records, core):
    """Of a probe's records those that are not empty, a star after every so many of all."""
    events = []
    for number, (start, end) in enumerate(records):
        if start != end:
            events.append({"record": {"start": start, "end": end}, "number": number, "reply": 0,
                           "side": context["side"], "core": core})
        if context["star_every"] and (number + 1) % context["star_every"] == 0:
            events.append(STAR)
    return events


def command_events(context, records, reply, core):
    """What a core sends for one command: its results, its reply, its last star."""
    end = reply["status"] | reply["opcode"] << 8
    last = {"record": {"start": reply["rows"], "end": end}, "number": reply["subwindow"],
            "reply": 1, "side": context["side"], "core": core}
    return [*(results_of(context, records, core) if context["probe"] else []), last, STAR]


def tagged(answers):
    """Answers of a combiner as events; a star becomes (STAR, side, last)."""
    events = []
    for answer in answers:
        assert answer["stars"] or answer["present"], "an answer has stars or data"
        assert answer["stars"] or not answer["last"], "a star ends an answer"
        events += [(STAR, answer["side"], answer["last"])] * answer["stars"]
        if answer["present"]:
            events.append(answer["data"])
    return events
