#!/usr/bin/env python3
"""Checks the constants and identities of the documents beside it with integers of any size. Prints one line for each."""
import random

C = 0x1000003D1
P = 2**256 - C
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
     0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)
LAMBDA = 0x5363AD4CC05C30E0A5261C028812645A122E22EA20816678DF02967C1B23BD72
BETA = 0x7AE96A2B657C07106E64479EAC3434E99CF0497512F58995C1396C28719501EE
A1, B1 = 0x3086D221A7D46BCDE86C90E49284EB15, 0xE4437ED6010E88286F547FA90ABFE4C3
A2 = A1 + B1
rng = random.Random(4)


def inv(a):
    return pow(a, P - 2, P)


def affine_add(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    slope = 3 * a[0] ** 2 * inv(2 * a[1]) if a == b else (b[1] - a[1]) * inv(b[0] - a[0])
    x = (slope**2 - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(k, point):
    total = None
    for bit in bin(k % N)[2:]:
        total = affine_add(total, total)
        if bit == "1":
            total = affine_add(total, point)
    return total


def double(point):
    x, y, z = point
    a, m = y * y, 3 * x * x
    v = 4 * x * a
    x3 = (m * m - 2 * v) % P
    return x3, (m * (v - x3) - 8 * a * a) % P, 2 * y * z % P


def half(a):
    return (a + P if a % 2 else a) // 2


def double_by_half(point):
    x, y, z = point
    s, m = y * y, half(3 * x * x % P)
    t = x * s
    x3 = (m * m - 2 * t) % P
    return x3, -(m * (x3 - t) + s * s) % P, y * z % P


def mixed(point, other):
    (x1, y1, z), (x, y) = point, other
    h, r = (x * z * z - x1) % P, (y * z**3 - y1) % P
    v = x1 * h * h
    x3 = (r * r - h**3 - 2 * v) % P
    return x3, (r * (v - x3) - y1 * h**3) % P, z * h % P


def to_affine(point):
    x, y, z = point
    i = inv(z)
    return x * i * i % P, y * i**3 % P


def field():
    limbs = lambda v: [v >> 52 * i & 2**52 - 1 for i in range(5)]
    for k in (2, 3, 4):
        parts = [2**60 + 2**52 - k * C] + 3 * [2**60 - 2**8 + 2**52 - 1] + [k * 2**48 - 1 - 2**8]
        assert sum(part << 52 * i for i, part in enumerate(parts)) == k * P
    for _ in range(200):
        a, b = limbs(rng.randrange(2**260)), limbs(rng.randrange(2**260))
        columns = [0] * 10
        for i in range(5):
            for j in range(5):
                columns[i + j] += a[i] * b[j] & 2**52 - 1
                columns[i + j + 1] += a[i] * b[j] >> 52
        for i in range(5, 9):
            columns[i + 1] += columns[i] >> 52
            columns[i] &= 2**52 - 1
        assert columns[9] < 2**52
        low = columns[:5] + [0]
        for i in range(5):
            low[i] += columns[5 + i] * 16 * C & 2**52 - 1
            low[i + 1] += columns[5 + i] * 16 * C >> 52
        t = (low[4] >> 48) + (low[5] << 4)
        low[4] &= 2**48 - 1
        value = sum(limb << 52 * i for i, limb in enumerate(low[:5])) + t * C
        product = sum(x << 52 * i for i, x in enumerate(a)) * sum(x << 52 * i for i, x in enumerate(b))
        assert t < 2**42 and value < 2**256 + 2**219 and value % P == product % P


def words():
    """Section 5 of field.md, on words at their edges and random ones."""
    edges = [0, 1, 2**64 - 1, 2**64 - 2, 2**63, C, 2**64 - C]
    word = lambda: rng.choice(edges) if rng.random() < 0.8 else rng.randrange(2**64)
    number = lambda count: sum(word() << 64 * i for i in range(count))
    for k in (2, 3, 4):
        assert [2**64 - k * C] + 3 * [2**64 - 1] + [k - 1] == [(k * P) >> 64 * i & 2**64 - 1 for i in range(5)]
    cases = [(number(8) + rng.randrange(2) * 2**512, number(4) + rng.randrange(2**16) * 2**256) for _ in range(3000)]
    cases += [(0, 2**256 * (top + 1) - 1) for top in range(2**64 // C - 3, 2**64 // C + 4)]
    for wide, start in cases:
        once = wide % 2**256 + (wide >> 256) % 2**256 * C + start + (wide >> 512) * C * 2**256
        top = once >> 256
        assert top < 2**35
        twice = once % 2**256 + top * C
        value = twice % 2**256 + (twice >> 256) * C
        assert twice < 2**256 or value < 2**128
        assert value < 2**256 and value % P == (wide + start) % P
    for _ in range(1000):
        raw = number(4) + rng.randrange(2**16) * 2**256
        once = raw % 2**256 + (raw >> 256) * C
        value = once % 2**256 + (once >> 256) * C
        assert (once < 2**256 or value < 2**64) and value < 2**256 and value % P == raw % P


def points():
    a, b = times(rng.randrange(1, N), G), times(rng.randrange(1, N), G)
    z = rng.randrange(1, P)
    jacobian = (a[0] * z * z % P, a[1] * z**3 % P, z)
    assert to_affine(double(jacobian)) == affine_add(a, a)
    assert to_affine(double_by_half(jacobian)) == affine_add(a, a)
    assert to_affine(mixed(jacobian, b)) == affine_add(a, b)
    assert mixed(jacobian, a)[2] == 0 and mixed(jacobian, (a[0], -a[1]))[2] == 0
    # Points that share their Z.
    d, t = double((a[0], a[1], 1)), (4 * a[0] * a[1] ** 2 % P, 8 * a[1] ** 4 % P, 2 * a[1] % P)
    assert to_affine(t) == a
    multiple = a
    for _ in range(15):
        (x1, y1, z), (x2, y2, _) = d, t
        c, e = (x1 - x2) ** 2, y1 - y2
        w1, w2 = x1 * c % P, x2 * c % P
        x3 = (e * e - w1 - w2) % P
        y = y1 * (w1 - w2) % P
        z3 = z * (x1 - x2) % P
        d, t = (w1, y, z3), (x3, (e * (w1 - x3) - y) % P, z3)
        multiple = affine_add(multiple, affine_add(a, a))
        assert to_affine(t) == multiple and to_affine(d) == affine_add(a, a)


def shared(points):
    """Sums of pairs of affine points with one inversion; a pair of the same point is doubled. None if exceptional."""
    denominators = [2 * a[1] if a == b else b[0] - a[0] for a, b in points]
    marked = [d % P == 0 for d in denominators]
    denominators = [1 if mark else d for d, mark in zip(denominators, marked)]
    before, product = [], 1
    for d in denominators:
        before.append(product)
        product = product * d % P
    assert product != 0
    inverse, sums = inv(product), []
    for (a, b), q, d, mark in reversed(list(zip(points, before, denominators, marked))):
        slope = (3 * a[0] ** 2 if a == b else b[1] - a[1]) * q * inverse % P
        inverse = inverse * d % P
        x = (slope * slope - a[0] - b[0]) % P
        sums.insert(0, None if mark else (x, (slope * (a[0] - x) - a[1]) % P))
    return sums


def affine():
    key, u = times(rng.randrange(1, N), G), rng.randrange(N // 2) * 2 + 1
    v = [rng.randrange(2**129) * 2 + 1 for _ in "ab"]
    windows = (u - 1) // 2 + 2**259
    tree = [times((2 * (windows >> 13 * i & 8191) - 8191) << 13 * i, G) for i in range(20)]
    multiples, power, inversions = [key], key, 0
    for level in range(5):
        pairs = list(zip(tree[::2], tree[1::2]))
        more = [(m, power) for m in multiples] if level else []
        sums = shared(pairs + more + [(power, power)])
        tree = sums[: len(pairs)] + tree[2 * len(pairs) :]
        multiples += sums[len(pairs) : -1]
        power, inversions = sums[-1], inversions + 1
    assert tree == [times(u, G)] and multiples == [times(2 * i + 1, key) for i in range(16)] and inversions == 5
    halves = [(k + 2**130 - 1) // 2 for k in v]
    digits = lambda half: [2 * (half >> 5 * i & 31) - 31 for i in reversed(range(26))]
    entry = lambda d: (multiples[abs(d) // 2][0], multiples[abs(d) // 2][1] * (1 if d > 0 else -1) % P)
    image = lambda point: (BETA * point[0] % P, point[1])
    pairs = [(entry(a), image(entry(b))) for a, b in zip(*map(digits, halves))]
    total = None
    for pair in shared(pairs):
        total = affine_add(times(32, total), pair) if total else pair
    assert total == times(v[0] + v[1] * LAMBDA, key)
    # Signs, and exceptions: one pair does not change another.
    a, b = multiples[3], multiples[7]
    minus = lambda point: (point[0], -point[1] % P)
    assert minus(shared([(a, minus(b))])[0]) == affine_add(minus(a), b)
    assert shared([(a, b), (a, minus(a)), (b, key)]) == [affine_add(a, b), None, affine_add(b, key)]
    # The only exception of the tree: the last sum.
    low = -(N % 2**208)
    k = N + 2 * low
    assert 0 < k < N and k % 2 == 1 and (k - low - low) == N and (k - low) >> 208 & 1 and (k - low) % 2**208 == 0


def scalars():
    assert pow(LAMBDA, 3, N) == 1 and pow(BETA, 3, P) == 1 and times(LAMBDA, G) == (BETA * G[0] % P, G[1])
    assert (A1 - B1 * LAMBDA) % N == 0 and (A2 + A1 * LAMBDA) % N == 0 and A1 % 2 == B1 % 2 == 1 and A2 % 2 == 0
    for _ in range(500):
        k = rng.choice([rng.randrange(N), rng.randrange(64), N - 1 - rng.randrange(64)])
        c1 = k * ((A1 * 2**364 + N // 2) // N) >> 364
        c2 = k * ((B1 * 2**364 + N // 2) // N) >> 364
        first, second = k - c1 * A1 - c2 * A2, c1 * B1 - c2 * A1
        if first % 2 == 0:
            first, second = first + A1, second - B1
        if second % 2 == 0:
            first, second = first + A2, second + A1
        assert first % 2 == second % 2 == 1 and (first + second * LAMBDA - k) % N == 0
        for half in (first, second):
            assert abs(half) < 2**130
            b = (half + 2**130 - 1) // 2
            assert 0 <= b < 2**130
            assert sum((2 * (b >> 5 * i & 31) - 31) << 5 * i for i in range(26)) == half
        odd = k if k % 2 else N - k
        b = (odd - 1) // 2 + 2**259
        assert sum((2 * (b >> 13 * i & 8191) - 8191) << 13 * i for i in range(20)) == odd


def no_square_root():
    for _ in range(5):
        x, y = times(rng.randrange(1, N), G)
        u, v = rng.randrange(1, N), rng.randrange(1, N)
        c = (x**3 + 7) % P
        za, zb = rng.randrange(1, P), rng.randrange(1, P)
        a, b = times(u, G), times(v, (x, y))
        xa, ya = a[0] * za**2 % P, a[1] * za**3 % P
        # On the curve isomorphic by y.
        xb, yb = b[0] * c * zb**2 % P, b[1] * y**3 * zb**3 % P
        total = affine_add(a, b)
        for r in (total[0], total[0] ^ 1):
            s, t = c * zb**2 % P, za**2 % P
            h = (xb * t - xa * s) % P
            n = ((yb * za**3) ** 2 + c * (ya * c * zb**3) ** 2 - (r * s * t + xa * s + xb * t) * h**2) % P
            dh = 2 * yb * ya * c * zb**3 * za**3 * h % P
            solution = n * h * inv(dh) % P
            assert (solution == y) == (r == total[0])
            assert (solution**2 % P == c) == (r == total[0])
        r = total[0]
        alpha = yb * za**3 * (xa - r * t)
        beta = ya * c * (c * zb**3 * (xa - r * t) + zb * ((xb * t - xa * s) % P))
        assert (y * alpha - beta) * 2 * yb * ya * zb**2 * inv(dh) % P == total[1]


def doubles():
    def nearest(value, unit):
        down, rest = divmod(value, unit)
        up = 2 * rest > unit or (2 * rest == unit and down % 2 == 1)
        return (down + up) * unit

    for _ in range(500):
        a, b = (rng.choice([rng.randrange(2**52), 2**52 - 1 - rng.randrange(3), rng.randrange(3)]) for _ in range(2))
        high = nearest(a * b + 2**104, 2**52)
        assert 2**104 <= high < 2**105
        less = 2**104 - 3 * 2**51
        assert less % 2**51 == 0 and 2**103 <= less < 2**104
        rest = high - less
        assert 0 < rest // 2**51 < 2**53 and rest % 2**51 == 0
        low = rest - a * b
        assert 2**52 <= low <= 2**53 and abs(low - 3 * 2**51) <= 2**51
        assert a * b == (high - 2**104) - (low - 3 * 2**51)


def lift(x):
    c = (x**3 + 7) % P
    y = pow(c, (P + 1) // 4, P)
    return (x, y if y % 2 == 0 else P - y) if y * y % P == c else None


def batch():
    assert (P + 1) // 4 == int("1" * 223 + "0" + "1" * 22 + "00001100", 2)
    total, of_s = None, 0
    for _ in range(4):
        (x, y), (r, ry) = times(d := rng.randrange(1, N), G), times(k := rng.randrange(1, N), G)
        d, k = d if y % 2 == 0 else N - d, k if ry % 2 == 0 else N - k
        e, weight = rng.randrange(N), 2 * rng.randrange(2**128) + 1
        total = affine_add(total, affine_add(times(weight, lift(r)), times(weight * e, lift(x))))
        of_s = (of_s + weight * (k + e * d)) % N
    assert total == times(of_s, G) != times(of_s + 1, G)
    assert lift(5) is None
    for bits in range(4, 14):
        windows = -(-130 // bits)
        half = 1 << bits - 1
        for _ in range(20):
            a = rng.randrange(2**128)
            k = rng.choice([2 * a + 1, rng.randrange(-(2**129), 2**129) * 2 + 1])
            b = (k + 2**130 - 1) // 2 + 2 ** (bits * windows - 1) - 2**129
            assert k != 2 * a + 1 or (k + 2**130 - 1) // 2 == a + 2**129
            digits = [b >> bits * i & 2 * half - 1 for i in range(windows)]
            assert sum((2 * d - 2 * half + 1) << bits * i for i, d in enumerate(digits)) == k
            for d in digits:
                size = half - 1 - d if d < half else d - half
                assert (2 * size + 1) * (-1 if d < half else 1) == 2 * d - 2 * half + 1
        # Buckets as integers: rows and columns, then one sum for every power of two.
        buckets = [rng.randrange(1000) for _ in range(half)]
        low = (bits - 1) // 2
        rows = [sum(buckets[i : i + (1 << low)]) for i in range(0, half, 1 << low)]
        columns = [sum(buckets[i :: 1 << low]) for i in range(1 << low)]
        places = [sum(rows)]
        for sums, count in ((columns, low), (rows, bits - 1 - low)):
            places += [sum(s for i, s in enumerate(sums) if i >> bit & 1) for bit in range(count)]
        assert len(places) == bits
        assert sum(p << i for i, p in enumerate(places)) == sum((2 * j + 1) * s for j, s in enumerate(buckets))


def sixty_two(eta, f, g):
    """As `divsteps` of inverse.rs: f and g modulo 2^64, the matrix as integers."""
    word, (u, v, q, r), left = 2**64 - 1, (1, 0, 0, 1), 62
    f, g = f & word, g & word
    while True:
        low = g | 1 << left
        zeros = (low & -low).bit_length() - 1
        g, u, v, eta, left = g >> zeros, u << zeros, v << zeros, eta - zeros, left - zeros
        if left == 0:
            return eta, (u, v, q, r)
        if eta < 0:
            eta, f, g, u, q, v, r = -eta, g, -f & word, q, -u, r, -v
            multiple, bits = f * g * (f * f - 2), 6
        else:
            multiple, bits = -(f + ((f + 1 & 4) << 1)) * g, 4
        multiple &= 2 ** min(eta + 1, left, bits) - 1
        g, q, r = g + f * multiple & word, q + u * multiple, r + v * multiple


def divsteps():
    for m in (P, N):
        most, inverse_of_m = 0, pow(m, -1, 2**62)
        edges = [1, 2, m - 1, m - 2, (m + 1) // 2, 2**255, 2**128, 2**62, 2**62 - 1, 2**256 - 1]
        for x in edges + [rng.randrange(1, m) for _ in range(200)] + [rng.randrange(1, 2**64) for _ in range(50)]:
            # One step at a time.
            delta, f, g, steps, states = 1, m, x, 0, []
            while steps < 744:
                if steps % 62 == 0:
                    states.append((delta, f, g))
                if g % 2 and delta > 0:
                    delta, f, g = 1 - delta, g, (g - f) // 2
                else:
                    delta, g = 1 + delta, (g + g % 2 * f) // 2
                steps, most = steps + 1, max(most, steps if g else 0)
            assert g == 0 and abs(f) == 1
            # 62 at a time, with the inverse.
            d, e, eta, f, g = 0, 1, -1, m, x
            for state in states:
                assert (-eta, f, g) == state
                eta, (u, v, q, r) = sixty_two(eta, f, g)
                assert abs(u) + abs(v) <= 2**62 and abs(q) + abs(r) <= 2**62
                f, g = u * f + v * g, q * f + r * g
                assert f % 2**62 == 0 == g % 2**62
                f, g = f >> 62, g >> 62
                sums = []
                for a, b in ((u, v), (q, r)):
                    sum_, multiple = a * d + b * e, (a if d < 0 else 0) + (b if e < 0 else 0)
                    multiple -= inverse_of_m * sum_ + multiple & 2**62 - 1
                    assert (sum_ + m * multiple) % 2**62 == 0
                    sums.append(sum_ + m * multiple >> 62)
                d, e = sums
                assert -2 * m < d < m and -2 * m < e < m
                assert (f - d * x) % m == 0 == (g - e * x) % m
            assert d * f * x % m == 1
        assert most < 741


for part in (field, words, doubles, points, affine, scalars, no_square_root, divsteps, batch):
    part()
    print(part.__name__, "holds")
