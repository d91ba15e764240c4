#!/usr/bin/env python3
"""How lively `limber live` is: frames per second, simulated seconds per second, and milliseconds from a hand to the frame
that shows it, through HTTP as a page asks for them, while a hand pulls all the time. Pictures are not drawn.

    bin/build && bench/live.py [SCENE [SECONDS]] [--set POINTER=VALUE ...]
"""

import argparse
import http.client
import json
import math
import pathlib
import re
import statistics
import struct
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="?", default=str(ROOT / "scenes/conjac/dragon.json"))
    parser.add_argument("seconds", nargs="?", type=float, default=10)
    parser.add_argument("--set", action="append", default=[], metavar="POINTER=VALUE")
    parser.add_argument("--limber", default=str(ROOT / "build/release/apps/limber/limber"))
    options = parser.parse_args()
    process = subprocess.Popen([options.limber, "live", options.scene, "--no-open",
                                *(word for value in options.set for word in ("--set", value))],
                               stdout=subprocess.PIPE, text=True)
    try:
        host, port, root = re.match(r".* runs at http://([\d.]+):(\d+)(/[0-9a-f]{32}/)", process.stdout.readline()).groups()

        def connect():
            return http.client.HTTPConnection(host, int(port), timeout=60)

        def ask(connection, method, path, body=None):
            connection.request(method, root + path, body)
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status in (200, 204), (answer.status, data)
            return data

        hand, eye = connect(), connect()
        while not (data := ask(eye, "GET", "frame?after=0")):
            pass
        begin = 4 + struct.unpack("<I", data[:4])[0]
        x = struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:])
        size = max(max(x[d::3]) - min(x[d::3]) for d in range(3))
        ask(hand, "POST", "do", json.dumps({"do": "grab", "id": 1, "node": 0}))
        sent, stop = {}, threading.Event()

        def pull():
            mark = 0
            while not stop.is_set():
                mark += 1
                sent[mark] = time.monotonic()
                by = [0.1 * size * math.sin(0.05 * mark), 0.1 * size * math.cos(0.05 * mark), 0]
                ask(hand, "POST", "do", json.dumps({"do": "move", "id": 1, "by": by, "mark": mark}))
                time.sleep(1 / 60)

        thread = threading.Thread(target=pull)
        thread.start()
        times, delays, after, seen, first, size_of = [], [], 0, 0, None, 0
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            data = ask(eye, "GET", f"frame?after={after}")
            if not data:
                continue
            head = json.loads(data[4:4 + struct.unpack("<I", data[:4])[0]])
            now = time.monotonic()
            assert not head["failure"], head["failure"]
            if head["mark"] > seen:
                seen = head["mark"]
                delays.append(now - sent[seen])
            first = first or head
            times.append(now)
            after, last, size_of = head["number"], head, len(data)
        stop.set()
        thread.join()
        passed = times[-1] - times[0]
        print(f"{options.scene}: {(len(times) - 1) / passed:.1f} frames/s of {size_of / 1e3:.0f} kB, "
              f"{(last['step'] - first['step']) / passed:.1f} steps/s, "
              f"{(last['t'] - first['t']) / passed:.3f} simulated s/s, "
              f"{1e3 * statistics.median(delays):.0f} ms from hand to frame (median)")
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
