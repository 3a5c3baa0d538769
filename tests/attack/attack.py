#!/usr/bin/env python3
"""Attacks the built product as hostile users of a machine where root runs it would, and measures what they achieve.

attack.py [--quick] [--json FILE] [--list] [NAME...]

Needs root: users, namespaces and devices are made for each attack and end with it (isolation.py). Prints a line per
figure; ends with 1 when one is above its limit, or an attack came to no end.
"""

import argparse
import json
import os
import sys
import time

import isolation
import attack_tools
import client_attacks  # noqa: F401 (they register their attacks)
import exec_attacks  # noqa: F401
import file_attacks  # noqa: F401
import flood_attacks  # noqa: F401
import mapping_attacks  # noqa: F401
import privacy_attacks  # noqa: F401
import probe_attacks  # noqa: F401
import request_attacks  # noqa: F401
import rights_attacks  # noqa: F401
import target_attacks  # noqa: F401
import view_attacks  # noqa: F401


ROUNDS = 3


def perform_once(attack, is_quick):
    """Its result as a dict: figures, or why there are none."""
    def work():
        try:
            return {"figures": [figure.as_dict() for figure in attack.run(is_quick)]}
        except attack_tools.Impossible as reason:
            return {"impossible": str(reason)}
    return isolation.isolated(work, attack.deadline_s)


def is_delay(figure):
    return figure["unit"] in ("s", "ms")


def merged(before, now):
    """Figures of two rounds: a delay is the lesser one, since what others do on this machine is not in all rounds; of
    whatever else has a limit the greater one is kept."""
    def choose(one, other):
        if one["limit"] is None:
            return other
        return (min if is_delay(one) else max)(one, other, key=lambda figure: figure["value"])
    return [choose(one, other) for one, other in zip(before, now, strict=True)]


def may_be_others_fault(result):
    """Delays above their limits, and nothing else."""
    return not is_held(result) and "error" not in result and all(figure["held"] or is_delay(figure)
                                                                 for figure in result["figures"])


def perform(attack, is_quick):
    begin = time.monotonic()
    result = perform_once(attack, is_quick)
    rounds = 1
    while rounds < ROUNDS and may_be_others_fault(result):
        again = perform_once(attack, is_quick)
        rounds += 1
        if "figures" in again:
            again["figures"] = merged(result["figures"], again["figures"])
        result = again
    return {"name": attack.name, "finding": attack.finding, "seconds": round(time.monotonic() - begin, 1),
            "rounds": rounds, **result}


def is_held(result):
    return "error" not in result and all(figure["held"] for figure in result.get("figures", []))


def number(value):
    return f"{value:,.2f}" if isinstance(value, float) and value % 1 else f"{int(value):,}"


def print_result(result):
    name = f"{result['name']:20} {result['finding']:6}"
    if "impossible" in result:
        print(f"{name} skipped: {result['impossible']}")
    if "error" in result:
        print(f"{name} BROKEN: {result['error'].strip()}")
    for figure in result.get("figures", []):
        again = f", {result['rounds']} rounds" if result["rounds"] > 1 and is_delay(figure) else ""
        limit = "" if figure["limit"] is None else f"at most {number(figure['limit'])}"
        verdict = "" if figure["limit"] is None else ("held" if figure["held"] else "EXCEEDED") + again
        print(f"{name} {figure['what']:58} {number(figure['value']):>10} {figure['unit']:5} {limit:16} {verdict}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="attacks; default: all")
    parser.add_argument("--quick", action="store_true", help="the short forms, about a minute together")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    options = parser.parse_args()
    attacks = attack_tools.ATTACKS
    unknown = [name for name in options.names if name not in attacks]
    if unknown:
        sys.exit(f"cannot attack {', '.join(unknown)}: there are {', '.join(attacks)}")
    if options.list:
        for attack in attacks.values():
            print(f"{attack.name:20} {attack.finding:6} {attack.run.__doc__.splitlines()[0]}")
        return 0
    if os.geteuid() != 0:
        # tests/attack/CMakeLists.txt knows this line.
        print("skipped: attacks need root, who makes their users and namespaces")
        return 0
    results = []
    for name in options.names or attacks:
        results.append(perform(attacks[name], options.quick))
        print_result(results[-1])
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"quick": options.quick, "attacks": results}, file, indent=1)
    exceeded = [result["name"] for result in results if not is_held(result)]
    skipped = [result["name"] for result in results if "impossible" in result]
    print(f"{sum(result['seconds'] for result in results):.0f} s: {len(results) - len(exceeded) - len(skipped)} of {len(results)} attacks held" +
          (f"; not: {', '.join(exceeded)}" if exceeded else "") + (f"; skipped: {', '.join(skipped)}" if skipped else ""))
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
