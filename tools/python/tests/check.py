#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The package in a guest with a loaded driver: check.py [FPGA FOLDER] [CHECK...].

FPGA: number of a software FPGA, which streams a dataset from FOLDER; "-": there is none. Lines
are "ok NAME" and "not ok NAME"; the last one is "end". Each check has a buffer of its own, which
nobody may hold afterwards. All are of one process: Python starts slowly in a guest.
"""
import asyncio
import contextlib
import ctypes
import errno
import faulthandler
import functools
import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib

import aiohttp
import numpy

import rashpa
from rashpa.web import server

HEIGHT, WIDTH = 512, 1024   # of remu's datasets
TIMEOUT = 60


checks = []


def check(name, size="1M", fpga=False):
    """Declare a check with this name and a buffer of this size."""
    def add(function):
        checks.append((name, function, size, fpga))
        return function
    return add


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def mappings(buffer):
    gc.collect()
    return json.loads(run("rashpactl", "--json", "buffer", "info", buffer))["mappings"]


# --- streams of remu ---

class Data:
    """A dataset and its streams by remu."""

    IMAGES, BUNCH = 400, 4

    def __init__(self, number, folder):
        """Images of noise, all different."""
        self.number = number
        self.folder = folder
        self.images = numpy.random.default_rng(1).integers(0, 1 << 16, (7, HEIGHT, WIDTH), "<u2")
        for i, image in enumerate(self.images):
            image.tofile(f"{folder}/raw{i:02}.bin")

    @contextlib.contextmanager
    def stream(self, buffer):
        remu = subprocess.Popen(["remu", "--buffer", buffer, "--fpga", self.number, "--dataset",
                                 self.folder, "--bunch", str(self.BUNCH), "--slots", "8",
                                 "--images", str(self.IMAGES), "--timeout", str(TIMEOUT)],
                                stdout=subprocess.DEVNULL)
        try:
            yield
            assert not remu.wait(TIMEOUT)
        finally:
            remu.kill()
            remu.wait()

    def total(self, number):
        """The sum of all pixels of a stack."""
        frames = range(number * self.BUNCH, (number + 1) * self.BUNCH)
        return sum(int(self.images[frame % len(self.images)].sum(dtype="u8")) for frame in frames)

    def check(self, stack):
        assert stack.images.shape == (len(stack), HEIGHT, WIDTH)
        assert stack.images.dtype == numpy.dtype("<u2")
        for frame, image in zip(stack.frames, stack.images):
            same = numpy.array_equal(image, self.images[frame % len(self.images)])
            assert same, f"image {frame} is another one"


@check("consumer-finds-400: a consumer finds each of 400 frames right", "64M", True)
def consume(buffer, data):
    frames = 0
    with data.stream(buffer), rashpa.Stream(buffer, timeout=TIMEOUT, write=True) as stream:
        for stack in stream:
            data.check(stack)
            assert list(stack.frames) == list(range(frames, frames + len(stack)))
            assert not stack.roles.any() and not stack.incomplete and not stack.wrong
            assert stack.frame == frames and not stack.lost and not stack.skipped
            # an image that is not written again must not look right
            stack.images[:] = 0xa5a5
            frames += len(stack)
        status = stream.stat()
        about = stream.about
        counts = stream.await_end(TIMEOUT)
    assert frames == data.IMAGES, frames
    assert (status.frames, status.lost, status.held) == (frames, 0, 0), status
    assert (about.width, about.height, about.policy) == (WIDTH, HEIGHT, "wait"), about
    assert counts.sent == frames, counts


@check("one-shot-source-rests: a one-shot source rests until it is armed")
def one_shot(buffer):
    def write(word, value):
        word[0] = value
        assert rashpa.look(buffer) <= 1

    with rashpa.Buffer(buffer, write=True) as memory, rashpa.Channel() as channel:
        word = memory.array[64:72].view("<u8")
        source = channel.word(buffer, 64, one_shot=True)
        write(word, 1)
        event = channel.read(TIMEOUT)
        assert (event.source, event.kind, event.value, event.lost) == (source, "lock", 1, 0)
        # two events while it rests are one, reported at once
        write(word, 2)
        write(word, 3)
        try:
            channel.read(0)
            assert False, "it did not rest"
        except rashpa.Timeout:
            pass
        assert channel.arm(source)
        assert channel.read(TIMEOUT).value == 3
        # and it rests again: no event since, so arm() waits for the next one
        assert not channel.arm(source)
        write(word, 4)
        assert channel.read(TIMEOUT).value == 4
        try:
            channel.arm(source + 1)
            assert False, "there is no such source"
        except rashpa.Error as failure:
            assert failure.errno == errno.ENOENT
        try:
            channel.arm(channel.word(buffer, 64))
            assert False, "that one does not rest"
        except rashpa.Error as failure:
            assert failure.errno == errno.EINVAL
        del word
    try:
        channel.read(0)
        assert False, "the channel is closed"
    except ValueError:
        pass


@check("four-threads-release: four threads release stacks in any order", "64M", True)
def threads(buffer, data):
    lock, have = threading.Lock(), threading.Semaphore(0)
    taken, order, failures = [], [], []

    def work():
        rng = random.Random(threading.get_ident())
        while True:
            have.acquire()
            with lock:
                if not taken:
                    return
                # give the oldest one back at last, else there is no room for others
                late = taken[-1].number - taken[0].number > 4
                stack = taken.pop(0 if late else rng.randrange(len(taken)))
                order.append(stack.number)
            try:
                data.check(stack)
                assert stack.release()
            except Exception as failure:
                failures.append(failure)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    with data.stream(buffer), rashpa.Stream(buffer, timeout=TIMEOUT) as stream:
        for stack in stream:
            with lock:
                taken.append(stack.hold())
            # release one of several at random
            if stack.number >= 3:
                have.release()
        for _ in range(3 + len(workers)):
            have.release()
        for worker in workers:
            worker.join()
        status = stream.stat()
    assert not failures, failures
    assert status.frames == data.IMAGES and not status.held and not status.lost, status
    assert status.consumed == len(order), status
    assert sorted(order) == list(range(len(order))) and order != sorted(order), order


@check("consumer-asyncio-tasks: a consumer of asyncio, with other tasks", "64M", True)
def asynchronous(buffer, data):
    with data.stream(buffer):
        asyncio.run(both(buffer, data))


async def both(buffer, data):
    frames = ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticker = asyncio.ensure_future(tick())
    with rashpa.Stream(buffer, timeout=TIMEOUT) as stream:
        async for stack in stream:
            data.check(stack)
            frames += len(stack)
    ticker.cancel()
    assert frames == data.IMAGES, frames
    assert ticks > 10, "no other task ran"


@check("two-observers: two observers of a slow consumer's stream", "64M", True)
def observers(buffer, data):
    """The consumer gets all stacks; the observers see correct ones."""
    stop = threading.Event()
    seen, failures = {True: 0, False: 0}, []

    def look(latest):
        try:
            with rashpa.Stream(buffer, observe=True, latest=latest) as stream:
                last = -1
                while not stop.is_set():
                    try:
                        stack = stream.next(1)
                    except rashpa.Timeout:
                        continue
                    if stack is None:
                        return
                    assert stack.number > last
                    last = stack.number
                    raises(ValueError, functools.partial(stack.images.fill, 0), "read-only")
                    copy, frames = stack.images.copy(), stack.frames
                    if stack.intact():
                        for frame, image in zip(frames, copy):
                            assert numpy.array_equal(image, data.images[frame % len(data.images)])
                        seen[latest] += 1
                    stack.release()
        except Exception as failure:
            failures.append(failure)
            raise

    lookers = [threading.Thread(target=look, args=(latest,)) for latest in (True, False)]
    for looker in lookers:
        looker.start()
    frames = 0
    with data.stream(buffer), rashpa.Stream(buffer, timeout=TIMEOUT) as stream:
        for stack in stream:
            data.check(stack)
            frames += len(stack)
            time.sleep(0.02)
        assert not stream.stat().lost
    stop.set()
    for looker in lookers:
        looker.join()
    assert not failures, failures
    assert frames == data.IMAGES, frames
    print(f"# seen by LATEST {seen[True]}, by the other one {seen[False]} stacks")
    assert all(seen.values())


def log(buffer, out):
    """A consumer in its own process, which logs stacks that it takes and releases."""
    with rashpa.Stream(buffer, timeout=TIMEOUT) as stream:
        while stack := stream.next(TIMEOUT):
            line = f"{stack.number} {stack.frame} {int(stack.images.sum(dtype='u8'))}\n"
            os.write(out, f"took {line}".encode())
            time.sleep(0.02)
            assert stack.release()
            os.write(out, f"released {line}".encode())
    os.write(out, b"end\n")


def fork(function, *arguments):
    """A child process that runs only this."""
    faulthandler.cancel_dump_traceback_later()      # a thread, and threads are not forked
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        function(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


KILLS = 20


@check(f"kill-9-times/nothing-lost-nothing: kill -9, {KILLS} times: no stack is lost, and no released stack comes again",
       "64M", True)
def killed(buffer, data):
    again, last, released = 0, -1, set()
    with data.stream(buffer):
        for end in [3 + i % 4 for i in range(KILLS)] + [None]:
            here, there = os.pipe()
            child = fork(log, buffer, there)
            os.close(there)
            with open(here) as lines:
                for count, line in enumerate(lines):
                    what, *numbers = line.split()
                    if what == "end":
                        break
                    number, frame, total = map(int, numbers)
                    assert total == data.total(number) and frame == number * data.BUNCH
                    if what == "took":
                        assert number in (last, last + 1) and number not in released, number
                        again += number == last
                        last = number
                    else:
                        assert number == last and number not in released, number
                        released.add(number)
                    if count == end:
                        os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status == (-signal.SIGKILL if end else 0), status
    assert last + 1 == data.IMAGES // data.BUNCH, last
    print(f"# {again} stacks were taken again")


# --- streams of programs ---

@check("romulu-writes-producer: romulu writes what a producer sends")
def produce(buffer):
    images, rng, sent = 100, numpy.random.default_rng(2), []
    with tempfile.TemporaryDirectory() as folder:
        romulu = subprocess.Popen(["romulu", "--buffer", buffer, "--write", f"{folder}/got",
                                   "--timeout", str(TIMEOUT)], stdout=subprocess.DEVNULL)
        with rashpa.Producer(buffer, (48, 64), "u2", bunch=3, images=images, slots=4,
                             dataset="noise") as producer:
            while stack := producer.slot(TIMEOUT):
                with stack:
                    assert (stack.images.shape[1:], stack.images.dtype) == ((48, 64), "<u2")
                    stack.images[:] = rng.integers(0, 1 << 16, stack.images.shape)
                    sent.append(stack.images.copy())
            assert producer.stat().frames == images
        assert not romulu.wait(TIMEOUT)
        got = numpy.fromfile(f"{folder}/got", "<u2").reshape(images, 48, 64)
    assert numpy.array_equal(got, numpy.concatenate(sent))


@check("all-types-pixels: all types of pixels, and metadata of images")
def roundtrip(buffer):
    """The consumer gets the producer's metadata, with any type of pixel."""
    for dtype in "u1", "<u2", ">u2", ">u4", "i8", "<f4", ">f8":
        producer = rashpa.Producer(buffer, (5, 7), dtype, bunch=2, images=7, slots=3, meta=True)
        with producer, rashpa.Stream(buffer) as stream:
            for k, n in (0, 2), (1, 2), (2, 2), (3, 1):
                with producer.slot(TIMEOUT) as slot:
                    assert len(slot) == n
                    slot.images[:] = numpy.arange(n * 35).reshape(n, 5, 7) + k
                    slot.user = (k, 2 ** 64 - 1)
                    slot.frame = 100 + 10 * k
                    for i in range(n):
                        slot.describe(i, role=k + i, trigger=1000 + k, time=2 ** 40)
                stack = stream.next(TIMEOUT)
                assert stack.number == k and stack.frame == 100 + 10 * k
                assert stack.images.dtype == numpy.dtype(dtype), stack.images.dtype
                assert numpy.array_equal(stack.images,
                                         numpy.arange(n * 35).reshape(n, 5, 7) + k)
                assert list(stack.frames) == [100 + 10 * k + i for i in range(n)]
                assert list(stack.roles) == [k + i for i in range(n)]
                assert list(stack.table["trigger"]) == [1000 + k] * n
                assert stack.user == (k, 2 ** 64 - 1, 0, 0, 0, 0, 0, 0)
                assert 0 < stack.time_ns <= time.monotonic_ns()
                assert numpy.from_dlpack(stack).shape == (n, 5, 7) if dtype[0] != ">" else True
                assert numpy.asarray(stack).ctypes.data == stack.images.ctypes.data
                assert stack.release()
            assert producer.slot(TIMEOUT) is None
            producer.close()
            assert stream.next(TIMEOUT) is None


def raises(kind, call, *words):
    try:
        call()
    except kind as failure:
        assert all(word in str(failure) for word in words), failure
        return failure
    raise AssertionError(f"no {kind.__name__}")


def small(buffer, images=0, **options):
    return rashpa.Producer(buffer, (4, 6), "u2", images=images, **options)


def send(producer, value=0):
    with producer.slot(TIMEOUT) as slot:
        slot.images[:] = value


@check("released-error-memory: access to a released stack is an error, and its memory stays")
def released(buffer):
    """A stack after its release, and arrays after the stream."""
    array = taken_away(buffer)
    assert mappings(buffer) == 1
    assert (array == 3).all()
    array = array[:, 1:]
    assert mappings(buffer) == 1
    assert (array == 3).all()
    array = None
    assert mappings(buffer) == 0


@check("loop-stream-unnamed: a loop over an unnamed stream, and another one")
def nameless(buffer):
    """The stream is closed after the loop, though its last stack has a name."""
    for value in range(2):
        with small(buffer, images=1) as producer:
            send(producer, value)
            for stack in rashpa.Stream(buffer, timeout=TIMEOUT):
                assert (stack.images == value).all()
    assert mappings(buffer) == 0 and len(stack) == 1


def taken_away(buffer):
    """Returns an array of a released stack of closed streams."""
    with small(buffer, slots=2) as producer:
        stream = rashpa.Stream(buffer)
        send(producer, 1)
        stack = stream.next(TIMEOUT)
        before = stack.images
        assert stack.release() and stack.release()
        raises(rashpa.Released, lambda: stack.images, "given away")
        raises(rashpa.Released, lambda: numpy.asarray(stack))
        raises(rashpa.Released, stack.intact)
        raises(rashpa.Released, lambda: stack.table)
        # an earlier array shows the slot, and is read-only against mistakes
        send(producer, 2)
        send(producer, 3)
        assert (before == 3).all(), before
        raises(ValueError, lambda: before.fill(0), "read-only")
        # a loop goes on: the stack is given back; break: it is not
        for stack in stream:
            if stack.number == 2:
                break
        assert stream.stat().held == 1 and (stack.images == 3).all()
        # hold() keeps it
        stack.hold()
        send(producer, 4)
        other = next(stream)
        assert stream.stat().held == 2
        with other:
            assert (other.images == 4).all()
        assert stream.stat().held == 1
        stream.close()
        raises(rashpa.Released, lambda: stack.images, "closed")
        raises(rashpa.Released, stack.release, "closed")
        raises(rashpa.Released, stream.stat, "closed")
        stream.close()
        # the next consumer gets stacks that were not released
        with rashpa.Stream(buffer) as stream:
            with stream.next(TIMEOUT) as stack:
                assert stack.number == 2 and (stack.images == 3).all()
    return before


@check("others-dlpack-shows: arrays shared by DLPack show the slot, also after the release")
def dlpack(buffer):
    with small(buffer, slots=2) as producer, rashpa.Stream(buffer) as stream:
        send(producer, 1)
        with stream.next(TIMEOUT) as stack:
            theirs, copied = numpy.from_dlpack(stack), numpy.from_dlpack(stack, copy=True)
            assert theirs.ctypes.data == stack.images.ctypes.data != copied.ctypes.data
            assert not theirs.flags.writeable
            raises(ValueError, functools.partial(stack.images.fill, 0), "read-only")
            with rashpa.Stream(buffer, observe=True, from_start=True) as observer:
                with observer.next(TIMEOUT) as seen:
                    assert not numpy.from_dlpack(seen).flags.writeable
                    # consumers of DLPack versions without a read-only flag get no array
                    raises(BufferError, seen.__dlpack__)
        raises(rashpa.Released, stack.__dlpack__, "given away")
        for value in 2, 3:
            send(producer, value)
            stream.next(TIMEOUT).release()
        assert (theirs == 3).all() and (copied == 1).all()
    # the memory is shared: the buffer can be removed only after the last array
    del stack, seen
    assert (theirs == 3).all() and mappings(buffer) == 1


@check("slot-not-filled: a slot that could not be filled is given out again")
def failing(buffer):
    """A slot that could not be filled is given out again, and consumers never saw it."""
    with small(buffer, images=2) as producer, rashpa.Stream(buffer) as stream:
        try:
            with producer.slot(TIMEOUT) as slot:
                slot.images[:] = 1
                raise KeyError("filled by halves")
        except KeyError:
            pass
        raises(rashpa.Timeout, lambda: stream.next(0))
        send(producer, 2)
        send(producer, 3)
        assert [int(stack.images[0, 0, 0]) for stack in stream] == [2, 3]


@check("errors-classes-sentences: errors have classes, and sentences")
def errors(buffer):
    failure = raises(rashpa.Error, lambda: rashpa.Stream("nobody"))
    assert failure.errno == 2 and "nobody" in failure.strerror, failure
    assert isinstance(failure, OSError)
    raises(rashpa.Error, lambda: rashpa.Buffer("nobody"))
    raises(ValueError, lambda: small(buffer, policy="never"))
    raises(ValueError, lambda: rashpa.Producer(buffer, (4, 6), "c8"))
    raises(rashpa.Error, lambda: rashpa.Producer(buffer, (1 << 20, 1 << 20)), "slots")
    raises(rashpa.Error, lambda: rashpa.Stream(buffer, latest=True))
    with rashpa.Stream(buffer, observe=True) as observer:
        raises(ValueError, observer.latest)
    with rashpa.Stream(buffer) as stream:
        raises(rashpa.Busy, lambda: rashpa.Stream(buffer), f"process {os.getpid()} ")
        begin = time.monotonic()
        raises(rashpa.Timeout, lambda: stream.next(0.3))
        assert 0.25 < time.monotonic() - begin < 10
        raises(TimeoutError, lambda: stream.begin(0))
        assert stream.about is None
        with small(buffer, slots=2) as producer:
            raises(rashpa.Busy, lambda: small(buffer))
            about = stream.begin(TIMEOUT)
            assert (about.slots, about.state, about.dtype) == (2, "running", "<u2"), about
            send(producer)
            send(producer)
            raises(rashpa.Timeout, lambda: producer.slot(0.1), "no slot")
            for value in range(2):
                with stream.next(TIMEOUT) as stack:
                    assert stack.number == value
        assert stream.next(TIMEOUT) is None
        # a timeout of a loop
        with rashpa.Stream(buffer, observe=True, timeout=0) as observer:
            raises(rashpa.Timeout, lambda: list(observer))


@check("lock-record-cannot: a lock record that cannot be")
def malformed(buffer):
    with small(buffer) as producer, rashpa.Stream(buffer, observe=True) as observer:
        memory = rashpa.Buffer(buffer, write=True)
        where = rashpa._abi.ffi.offsetof("struct rashpa_stream_header", "lock_offset")
        lock = int(memory.array[where:where + 8].view("<u8")[0])
        send(producer)
        observer.next(TIMEOUT).release()
        memory.array[lock + 56:lock + 64].view("<u8")[0] = 1 << 62  # stacks that are complete
        raises(rashpa.Malformed, lambda: observer.next(0), "impossible")


def hang(buffer, out):
    with rashpa.Producer(buffer, (4, 6)) as producer:
        for value in range(3):
            send(producer, value)
        os.write(out, b"sent")
        signal.pause()


class Victim:
    """A producer in its own process, which has sent three stacks."""

    def __init__(self, buffer):
        here, there = os.pipe()
        self.child = fork(hang, buffer, there)
        os.close(there)
        assert os.read(here, 4) == b"sent"
        os.close(here)

    def kill(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


@check("producer-killed: a producer that is killed")
def died(buffer):
    """After the producer is killed, complete stacks come first, then the error."""
    victim = Victim(buffer)
    with rashpa.Stream(buffer, timeout=TIMEOUT) as stream:
        got = []

        def loop():
            for stack in stream:
                got.append(int(stack.images[0, 0, 0]))
                if len(got) == 3:
                    victim.kill()

        raises(rashpa.ProducerDied, loop, "after 3 stacks")
        assert got == [0, 1, 2], got


@check("producer-killed-asyncio: a producer that is killed, for asyncio")
def died_async(buffer):
    """The same for a loop of asyncio, which gets no event of it."""
    victim = Victim(buffer)

    async def loop():
        got = []
        with rashpa.Stream(buffer, timeout=TIMEOUT) as stream:
            try:
                async for stack in stream:
                    got.append(int(stack.images[0, 0, 0]))
                    if len(got) == 3:
                        victim.kill()
            except rashpa.ProducerDied:
                return got
        raise AssertionError("it ended well")

    assert asyncio.run(loop()) == [0, 1, 2]


@check("another-stream: another stream")
def replaced(buffer):
    stream = rashpa.Stream(buffer)
    with small(buffer) as producer:
        send(producer)
        stream.next(TIMEOUT).release()
    with small(buffer) as producer:
        raises(rashpa.Replaced, lambda: stream.next(TIMEOUT))
        send(producer, 7)
        with stream.next(TIMEOUT) as stack:
            assert (stack.images == 7).all()
    stream.close()


@check("control-c: Control-C")
def interrupted(buffer):
    """Control-C ends an endless wait."""
    with rashpa.Stream(buffer) as stream:
        def press():
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)

        for wait in stream.next, lambda: asyncio.run(stream.wait()):
            threading.Thread(target=press).start()
            raises(KeyboardInterrupt, wait)


@check("close-asyncio: close() while another task of asyncio waits")
def closed_async(buffer):
    """close() ends the wait of another task."""
    async def loop():
        stream = rashpa.Stream(buffer)
        wait = asyncio.ensure_future(stream.wait())
        for _ in range(5):      # until it waits for the descriptor
            await asyncio.sleep(0)
        stream.close()
        try:
            await asyncio.wait_for(wait, 10)
        except rashpa.Released:
            return True
        return False

    assert asyncio.run(loop())


@check("close-another-thread: close() while another thread waits")
def closed(buffer):
    """close() ends the wait of another thread, and no call uses the closed handle."""
    stream = rashpa.Stream(buffer)
    failures = []

    def wait():
        failures.append(raises(rashpa.Released, stream.next))

    waiter = threading.Thread(target=wait)
    waiter.start()
    stream.close()
    waiter.join(TIMEOUT)
    assert failures, "it waits still"


@check("stack-overwritten: a stack that was overwritten")
def overwritten(buffer):
    """A lapped consumer: release() reports it, and losses are counted."""
    with small(buffer, slots=4, policy="overwrite") as producer:
        with rashpa.Stream(buffer) as stream:
            stream.begin(TIMEOUT)
            send(producer, 0)
            stack = stream.next(TIMEOUT)
            assert stack.intact()
            for value in range(1, 10):
                send(producer, value)
            assert not stack.intact()
            assert not stack.release()
            stack = stream.next(TIMEOUT)
            assert stack.lost == stack.number - 1 > 0, stack
            assert (stack.images == stack.number).all() and stack.release()


@check("stacks-left: stacks that were dropped")
def dropped(buffer):
    with small(buffer, slots=2, policy="drop") as producer, rashpa.Stream(buffer) as stream:
        stream.begin(TIMEOUT)
        send(producer)
        send(producer)
        for _ in range(2):
            raises(rashpa.Error, producer.slot, "left out")
        stream.next(TIMEOUT).release()
        send(producer)
        assert producer.stat().skipped == 2
        frames = [int(stream.next(TIMEOUT).frame) for _ in range(2)]
        assert frames == [1, 4], frames


@check("slots-another-buffer: slots in another buffer, and in memory of a program")
def elsewhere(buffer):
    """Memory that the header names, as rashpa_payload_listen() would offer it."""
    other, folder = buffer + "-slots", tempfile.mkdtemp()
    run("rashpactl", "buffer", "create", other, "1M")
    node = os.open(f"/dev/rashpa/buffer/{other}", os.O_RDWR)
    dmabuf = ctypes.CDLL(os.environ["RASHPA_LIBRARY"]).rashpa_buffer_dmabuf(node)
    os.environ["RASHPA_RUN"] = folder
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{folder}/program")
        listener.listen()

        def own():
            for _ in range(2):    # the producer asks, and the consumer
                with listener.accept()[0] as client:
                    text = b"RASHPAY1" + (1 << 20).to_bytes(8, "little")
                    socket.send_fds(client, [text], [dmabuf])
        owner = threading.Thread(target=own)
        owner.start()
        for name in (other, "program"):
            with small(buffer, 1, payload_name=name) as producer, \
                    rashpa.Stream(buffer, timeout=TIMEOUT, write=True, accept=(name,)) as stream:
                send(producer, 77)
                for stack in stream:
                    assert (stack.images == 77).all()
                    stack.images[:] = 78
            with rashpa.Buffer(other) as slots:
                assert (slots.array[:48].view("u2") == 78).all(), name
        owner.join()
    os.close(dmabuf)
    os.close(node)
    run("rashpactl", "buffer", "remove", other)


@check("places-workers: places, workers that share one, and times of day")
def places(buffer):
    with rashpa.Stream(buffer, place="a") as a, rashpa.Stream(buffer, place="w", workers=2) as one, \
            rashpa.Stream(buffer, place="w", workers=2) as two:
        raises(rashpa.Error, lambda: rashpa.Stream(buffer, place="a"), f"process {os.getpid()}")
        with rashpa.Producer(buffer, (4, 6), slots=4, meta=True, tick_ns=10, tick_of=1, tick_tai=1 << 60) as producer:
            for number in range(3):
                with producer.slot() as slot:
                    slot.images[:] = number
                    slot.describe(0, time=7)
            stacks = [stream.next(TIMEOUT) for stream in (a, one, two, a)]
            assert [stack.number for stack in stacks] == [0, 0, 1, 1], stacks
            known = {place.name: place for place in a.places()}
            assert known["w"].workers == 2 and known["a"].held == 2 and known["a"].process == os.getpid(), known
            late = numpy.datetime64(time.time_ns(), "ns") - stacks[0].datetime
            assert abs(late) < numpy.timedelta64(TIMEOUT, "s"), late
            clock = a.clock()
            assert stacks[0].datetimes[0] == numpy.datetime64((1 << 60) + 70 - clock.utc_s * 10**9, "ns")
            for stack in stacks:
                assert stack.release()
            assert a.stat().consumed == 2


@check("buffers-arrays: buffers are arrays")
def memory(buffer):
    """Buffers as arrays."""
    assert buffer in rashpa.buffers()
    with rashpa.Buffer(buffer, write=True) as mine:
        mine.array[-8:] = range(8)
        array = numpy.asarray(mine)
        assert len(mine) == array.size and array.ctypes.data == mine.array.ctypes.data
    raises(ValueError, lambda: mine.array, "closed")
    assert list(array[-8:]) == list(range(8))
    mine = rashpa.Buffer(buffer)
    assert list(mine.array[-8:]) == list(range(8)) and not mine.array.flags.writeable
    raises(rashpa.Busy, lambda: rashpa.Buffer(buffer, write=True, exclusive=True))


@check("board: registers, windows and maps of a board", "1M", True)
def board(buffer, data):
    with rashpa.Board(int(data.number)) as one:
        registers = one.window("registers")
        assert registers[0] == 0x50485352 and one.info.state == 0, one.info
        registers[0x28] = 0x12345678
        assert registers[0x28] == one.window(bar=0, length=4096)[0x28] == 0x12345678
        for wrong in 2, -4, len(registers):
            raises(IndexError, functools.partial(registers.__getitem__, wrong), "register")
        raises(rashpa.Error, lambda: one.window("none"), "none")
        with one.map(buffer, "to-memory", length=65536) as made:
            assert sum(length for _, length in made.addresses()) == 65536
            assert made.id and made.kind in ("host", "iova"), made.kind
        raises(ValueError, made.addresses, "closed")


@check("page-board: the page shows a board, its stream, and its images as they are", "64M", True)
def page(buffer, data):
    async def look():
        token = "a token of the test"
        one = server.Page(server.arguments([]), token)
        url = (await one.start("127.0.0.1:0")).split("/#")[0]
        missing = {"streams", "machine", "image"}
        async with aiohttp.ClientSession() as session, \
                session.ws_connect(url + "/link", headers={"Origin": url}, max_msg_size=1 << 24) as ws:
            await ws.send_str(token)
            await ws.send_str(json.dumps({"want": [[buffer, None]]}))
            while missing:
                message = (await ws.receive()).data
                if isinstance(message, bytes):
                    size = 4 + int.from_bytes(message[:4], "little")
                    header = json.loads(message[4:size])
                    image = numpy.frombuffer(zlib.decompress(message[size:]), "<" + header["kind"])
                    assert numpy.array_equal(image.reshape(HEIGHT, WIDTH), data.images[header["frame"] % 7]), header
                    missing -= {"image"}
                    continue
                found = json.loads(message)
                if any((s["buffer"], s["content"]) == (buffer, "image") for s in found.get("streams", {}).get("streams", [])):
                    missing -= {"streams"}
                if any(d["number"] == int(data.number) for d in (found.get("machine", {}).get("list") or {}).get("devices", [])):
                    missing -= {"machine"}
        await one.end()

    with data.stream(buffer), rashpa.Stream(buffer, timeout=TIMEOUT) as stream:
        asyncio.run(asyncio.wait_for(look(), TIMEOUT))
        for _ in stream:
            pass


def make(name, function, size, *data):
    buffer = "python"
    begin = time.monotonic()
    faulthandler.dump_traceback_later(3 * TIMEOUT, exit=True)
    run("rashpactl", "buffer", "create", buffer, size)
    good = True
    try:
        function(buffer, *data)
    except Exception:
        good = False
        print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
    gc.collect()
    left = subprocess.run(["rashpactl", "buffer", "remove", buffer], text=True,
                          capture_output=True, check=False)
    if left.returncode:
        print(f"# {left.stderr.strip()}")
        good = False
    print(f"# {time.monotonic() - begin:.1f} s")
    print("ok" if good else "not ok", name, flush=True)


def main(fpga="-", folder=None, *only):
    faulthandler.enable()
    data = Data(fpga, folder) if fpga != "-" else None
    for name, function, size, on_board in checks:
        if (not only or function.__name__ in only) and (data or not on_board):
            make(name, function, size, *([data] if on_board else []))
    print("end")


if __name__ == "__main__":
    main(*sys.argv[1:])
