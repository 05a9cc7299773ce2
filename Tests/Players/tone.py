"""How clean a tone is, and which."""

import math

# What the devices send, Hz.
SENT = 440


def tone(samples, rate):
    """The frequency in Hz by the zeros of the wave, and the share of its power that is at it; None when there is less than a quarter of a second or
    nothing but silence. `samples`: 16 bit. The share is that of tenths of a second: a lost packet leaves a leap of the wave in one of them."""
    count = len(samples)
    if count < rate // 4:
        return None
    power = sum(sample * sample for sample in samples) / count
    if power < 100:
        return None
    # Upwards through zero, and where between the two samples.
    zeros = [at - now / (now - before) for at, (before, now) in enumerate(zip(samples, samples[1:]), 1) if before < 0 <= now]
    if len(zeros) < 3:
        return None
    frequency = (len(zeros) - 1) * rate / (zeros[-1] - zeros[0])
    step, size = 2 * math.pi * frequency / rate, rate // 10
    at_it = 0.0
    for begin in range(0, count - size + 1, size):
        block = samples[begin : begin + size]
        real = sum(sample * math.cos(step * at) for at, sample in enumerate(block)) / size
        imaginary = sum(sample * math.sin(step * at) for at, sample in enumerate(block)) / size
        at_it += 2 * (real * real + imaginary * imaginary)
    return frequency, at_it / (count // size) / power
