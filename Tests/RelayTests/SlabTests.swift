import Testing

@testable import Relay

@Suite struct SlabTests {
    /// Each piece lies inside its slab and no two overlap, for every size.
    @Test func piecesAreApart() {
        var random = SeededGenerator(seed: 1)
        var allocator = SlabAllocator()
        var pieces: [(slab: Slab, bytes: UnsafeMutableRawBufferPointer)] = []
        var nowMs: Int64 = 0
        for index in 0..<3_000 {
            nowMs += Int64.random(in: 0...300, using: &random)
            let count = index % 50 == 0 ? Int.random(in: 1...600_000, using: &random) : Int.random(in: 1...3_000, using: &random)
            let piece = allocator.reserve(count, nowMs: nowMs)
            #expect(piece.bytes.count == count && piece.slab.used <= piece.slab.capacity)
            pieces.append(piece)
        }
        let sorted = pieces.map { UnsafeRawBufferPointer($0.bytes) }.sorted { $0.baseAddress! < $1.baseAddress! }
        for (one, next) in zip(sorted, sorted.dropFirst()) { #expect(one.baseAddress! + one.count <= next.baseAddress!) }
    }

    @Test func runsAreContiguous() {
        var allocator = SlabAllocator()
        let first = allocator.reserve(100, nowMs: 0)
        let second = allocator.reserve(50, nowMs: 0)
        #expect(first.slab === second.slab && first.bytes.baseAddress! + 100 == second.bytes.baseAddress!)
    }

    @Test func sizeFollowsTheRate() {
        var allocator = SlabAllocator()
        #expect(allocator.reserve(1, nowMs: 0).slab.capacity == 8 << 10)
        for _ in 0..<2_000 { _ = allocator.reserve(1_000, nowMs: 0) }
        #expect(allocator.reserve(1_000, nowMs: 0).slab.capacity == 256 << 10)
        var nowMs: Int64 = 0
        for _ in 0..<5_000 {
            nowMs += 100
            _ = allocator.reserve(1_000, nowMs: nowMs)
        }
        #expect(allocator.reserve(1_000, nowMs: nowMs).slab.capacity <= 32 << 10)
    }

    /// A large message does not end the slab of the small ones.
    @Test func largeMessagesAreApart() {
        var allocator = SlabAllocator()
        let small = allocator.reserve(100, nowMs: 0)
        let large = allocator.reserve(1 << 20, nowMs: 0)
        #expect(large.slab !== small.slab && large.slab.capacity == 1 << 20 && large.slab.free == 0)
        #expect(allocator.reserve(100, nowMs: 0).slab === small.slab)
    }

    @Test func firstMessageMayBeLarge() {
        var allocator = SlabAllocator()
        #expect(allocator.reserve(1 << 20, nowMs: 0).slab.capacity == 1 << 20)
        #expect(allocator.reserve(10, nowMs: 0).slab.capacity == 16 << 10)
    }

    @Test func resetLetsGo() {
        var allocator = SlabAllocator()
        weak let slab = allocator.reserve(10, nowMs: 0).slab
        #expect(slab != nil)
        allocator.reset()
        #expect(slab == nil)
    }
}

/// Reproducible random numbers: SplitMix64.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        self.state = seed &* 0x9E37_79B9_7F4A_7C15
    }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var word = self.state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
