#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages of the sink "publish", as a client of a DECTRIS detector decodes it, with cbor2 and HDF5's
filters. A line "ok NAME" or "not ok NAME" each, then "end"."""
import datetime
import os
import sys
import tempfile
import uuid

import cbor2
import h5py
import numpy
import zmq

from rashpa.processing import Error, Pipeline

SHAPE = (301, 220)
NONE = -2 ** 31
TYPES = {70: "<u4", 78: "<i4", 85: "<f4"}  # RFC 8746
FILTERS = {"lz4": (32004, ()), "bslz4": (32008, (0, 2))}
used = set()  # algorithms


def ok(good, name):
    print("ok" if good else "not ok", name, flush=True)


def image(frame):
    random = numpy.random.default_rng(frame)
    pixels = (random.integers(0, 65535, SHAPE) if frame == 3 else random.poisson(0.3, SHAPE)).astype("u2")
    pixels[0, 0] = 65535  # not valid
    return pixels


def unpack(algorithm, size, data):
    """HDF5 knows both framings."""
    used.add((algorithm, size))
    filter_, options = FILTERS[algorithm]
    numbers = int.from_bytes(data[:8], "big") // 4
    with h5py.File("unpack", "w", driver="core", backing_store=False) as h5:
        to = h5.create_dataset("data", (numbers,), "<u4", chunks=(numbers,), compression=filter_,
                               compression_opts=options)
        to.id.write_direct_chunk((0,), data)
        return to[:].tobytes()


def decode(decoder, tag):
    if tag.tag == 56500:
        return unpack(*tag.value)
    if tag.tag in TYPES:
        return numpy.frombuffer(tag.value, TYPES[tag.tag])
    if tag.tag == 40:
        shape, numbers = tag.value
        return numbers.reshape(shape)
    return tag


class Client:
    def __init__(self, context, kind, endpoint, waiting=1000):
        self.socket = context.socket(kind)
        self.socket.rcvhwm = waiting
        self.socket.rcvtimeo = 20000
        if kind == zmq.SUB:
            self.socket.subscribe(b"")
        self.socket.connect(endpoint)

    def __call__(self):
        return cbor2.loads(self.socket.recv(), tag_hook=decode)

    def all(self):
        """Messages until the end."""
        messages = [self()]
        while messages[-1]["type"] != "end":
            messages.append(self())
        self.socket.close()
        return messages


def images_are(messages, results, channel="threshold_1"):
    return ([m["image_id"] for m in messages] == [r.frame for r in results] and
            all(list(m["data"]) == [channel] and
                numpy.array_equal(m["data"][channel], r.image, equal_nan=True)
                for m, r in zip(messages, results)))


def meet(pipeline, clients):
    """Put images until each client has received one. Returns what the clients decoded."""
    results = []
    while not all(c.socket.poll(1) for c in clients):
        results.append(pipeline(image(len(results) % 5), frame=1000 + len(results)))
    return results


def sent(pipeline):
    stat = pipeline.stat()["sinks"]["publish"]
    return stat["images"] - stat["lost"]


def series(context, folder):
    mask = numpy.zeros(SHAPE, "u1")
    mask[7, 9] = 1
    numpy.save(f"{folder}/mask.npy", mask)
    for packing in "none", "lz4", "bitshuffle-lz4":
        endpoint = f"ipc://{folder}/{packing}"
        config = {"pretreat": {"mask": f"{folder}/mask.npy", "photon_energy_kev": 12.4},
                  "sinks": {"publish": {"endpoint": endpoint, "compression": packing}}}
        with Pipeline(config) as pipeline:
            first = pipeline(image(0), frame=1)  # no client is connected: it is lost
            lost = pipeline.stat()["sinks"]["publish"]["lost"]
            client = Client(context, zmq.PULL, endpoint)
            results = []
            while len(results) < 5:
                r = pipeline(image(len(results)), frame=100 + len(results))
                if sent(pipeline) > len(results):
                    results.append(r)
        start, *images, end = client.all()
        ok(lost == 1 and first.kept and images_are(images, results),
           f"images-sent-client: {packing}: images are sent to a connected client")
        ok({m["type"] for m in images} == {"image"} and
           len({(m["series_id"], m["series_unique_id"]) for m in (start, *images, end)}) == 1 and
           uuid.UUID(start["series_unique_id"]).version == 4, f"series: {packing}: they are a series")
    ok(used == {("lz4", 0), ("bslz4", 4)}, "arrays-compressed-names: arrays are compressed, with these names")
    at = numpy.argwhere(start["pixel_mask"]["threshold_1"])
    ok(start["type"] == "start" and start["channels"] == ["threshold_1"] and
       (start["image_size_y"], start["image_size_x"]) == SHAPE and (at == [[7, 9]]).all() and
       start["pixel_mask_enabled"] is True and start["user_data"].startswith("rashpa ") and
       start["incident_energy"] == 12400 and abs(start["incident_wavelength"] - 0.99987) < 1e-5 and
       isinstance(start["arm_date"], datetime.datetime), "start-known: the start says what is known")


def whole(context, folder):
    endpoint = f"ipc://{folder}/whole"
    config = {"pretreat": {"gain": 2, "round": True}, "sinks": {"publish": {
        "endpoint": endpoint, "pattern": "pub", "channel": "photons", "waiting": 1000}}}
    with Pipeline(config) as pipeline:
        pipeline(image(0))  # begins it
        clients = [Client(context, zmq.SUB, endpoint) for _ in range(2)]
        results = meet(pipeline, clients)
        results.append(pipeline(image(5), frame=1))
    for r in results:
        r.image = numpy.where(numpy.isnan(r.image), NONE, r.image)
    for client in clients:
        start, *images, end = client.all()
        ok(start["type"] == "start" and "pixel_mask" not in start and end["type"] == "end" and
           images and images[-1]["data"]["photons"].dtype == "<i4" and
           images_are(images, results[-len(images):], "photons"),
           "subscriber-pub-start: each subscriber of pub has the start, and whole numbers")


def until_lost(pipeline, more, start=0):
    """Put images without a reader until so many more are lost. Returns their number."""
    lost, frame = pipeline.stat()["sinks"]["publish"]["lost"] + more, start
    while pipeline.stat()["sinks"]["publish"]["lost"] < lost and frame < start + 1000:
        frame += 1
        pipeline(image(0), frame=frame)
    return frame - start


def slow_push(context, folder):
    endpoint = f"ipc://{folder}/slow-push"
    with Pipeline({"sinks": {"publish": {"endpoint": endpoint, "waiting": 3}}}) as pipeline:
        pipeline(image(0))
        asleep = Client(context, zmq.PULL, endpoint, 3)
        meet(pipeline, [asleep])
        ok(until_lost(pipeline, 20, 2000) < 40, "push/not-read-not: push: the sink does not wait for a client, and counts all losses")
        start, *images = [asleep() for _ in range(4)]
        frames = [m["image_id"] for m in images]
        ok(start["type"] == "start" and frames == sorted(frames) or print("#", frames), "push/found-room-order: push: what found room is there, in order")
        asleep.socket.close(linger=0)


def slow_pub(context, folder):
    """ZeroMQ does not report messages that a full subscriber misses."""
    endpoint = f"ipc://{folder}/slow-pub"
    config = {"sinks": {"publish": {"endpoint": endpoint, "pattern": "pub", "waiting": 3}}}
    with Pipeline(config) as pipeline:
        pipeline(image(0))
        asleep = Client(context, zmq.SUB, endpoint, 3)
        meet(pipeline, [asleep])
        found = until_lost(pipeline, 1)
        awake = Client(context, zmq.SUB, endpoint)
        meet(pipeline, [awake])
        start = awake()
        pipeline(image(0), frame=9999)      # behind all that is on its way
        while awake()["image_id"] != 9999:
            pass
        for i in range(30):
            pipeline(image(0), frame=i)
            if awake()["image_id"] != i:
                break
        lost = pipeline.stat()["sinks"]["publish"]["lost"]
        ok(found < 100 and start["type"] == "start" and i == 29 and 0 < lost < 30,
           "pub/not-read-not: pub: the sink does not wait for a slow client, others receive all, losses count")
        kinds = []
        while asleep.socket.poll(100):
            kinds.append(asleep()["type"])
        ok(kinds[0] == "start" and len(kinds) < found + 10 and
           until_lost(pipeline, 1) < 100, "pub/once-read-late: pub: once it has read, it may be late again")
        awake.socket.close(linger=0)
        asleep.socket.close(linger=0)


def wrong(folder):
    def says(sentence, **more):
        try:
            Pipeline({"sinks": {"publish": more}})(image(0))
        except Error as failure:
            return sentence in str(failure) or print("#", failure)
        return print("# nothing failed")

    ok(says("endpoint: is missing") and says("Protocol not supported", endpoint="nowhere://x") and
       says("/none/x: Not a directory", endpoint=f"ipc://{folder}/none/x") and
       says("is not one of none, lz4, bitshuffle-lz4", endpoint="ipc://x", compression="zstd") and
       says("\"99999\" is no port", endpoint="tcp://*:99999") and
       says("\"12x\" is no port", endpoint="tcp://127.0.0.1:12x") and
       says("is not one of push, pub", endpoint="ipc://x", pattern="pair") and
       says("0 is not 1 to", endpoint="ipc://x", waiting=0), "wrong-refused: wrong configurations are refused")
    with open("precious", "w") as file:
        file.write("precious")
    ok(says("precious exists, and is no socket", endpoint="ipc://precious") and
       open("precious").read() == "precious", "file-socket-name: a file that has a socket's name is not removed")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work, zmq.Context() as zeromq:
        os.chdir(work)
        series(zeromq, work)
        whole(zeromq, work)
        slow_push(zeromq, work)
        slow_pub(zeromq, work)
        wrong(work)
    print("end")
    sys.exit()
