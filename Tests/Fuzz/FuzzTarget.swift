/// One decoder and what is true of it whatever a peer sends. A plain value.
struct FuzzTarget: Sendable {
    let name: String
    /// Bytes of one input.
    let maxLength: Int
    /// MiB of one allocation. It is small where nothing may be reserved for a length that was only announced.
    let allocationMiB: Int
    /// Of one input; a hundred times what the slowest takes.
    let timeoutSeconds: Int
    /// Reads one input, and ends the process with words where something is not true.
    let run: @Sendable (FuzzInput) -> Void

    init(
        _ name: String, maxLength: Int, allocationMiB: Int = 2, timeoutSeconds: Int = 5, run: @escaping @Sendable (FuzzInput) -> Void
    ) {
        self.name = name
        self.maxLength = maxLength
        self.allocationMiB = allocationMiB
        self.timeoutSeconds = timeoutSeconds
        self.run = run
    }

    static let all: [FuzzTarget] = [
        .chunks, .serverSession, .clientSession, .handshake, .command, .amf0, .amf3, .names, .tags, .configurations, .playlist,
        .chunkGuard, .upstreamURL, .muxer, .audio, .snapshot, .jitter,
    ]
}

/// Ends the process, which libFuzzer takes for a crash and keeps the input of.
func expect(_ isTrue: Bool, _ words: @autoclosure () -> String) {
    if !isTrue { fatalError(words()) }
}

/// Whether they are equal, or look alike and have a number of a peer's in them that is none (NaN), which equals nothing.
func areSame<Value: Equatable>(_ one: Value, _ other: Value) -> Bool {
    if one == other { return true }
    let text = "\(one)"
    return text.contains("nan") && text == "\(other)"
}

/// One input: the first bytes choose what a target does, the rest is what the peer sends.
struct FuzzInput: Sendable {
    private let bytes: [UInt8]
    private var next = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The next byte; 0 at the end.
    mutating func byte() -> UInt8 {
        guard self.next < self.bytes.count else { return 0 }
        defer { self.next += 1 }
        return self.bytes[self.next]
    }

    /// Two bytes, big-endian.
    mutating func word() -> UInt16 {
        let high = self.byte()
        return UInt16(high) << 8 | UInt16(self.byte())
    }

    /// As many as there are, at most.
    mutating func take(_ count: Int) -> [UInt8] {
        let end = min(self.bytes.count, self.next + count)
        defer { self.next = end }
        return Array(self.bytes[self.next..<end])
    }

    /// Everything that was not taken.
    var rest: [UInt8] { Array(self.bytes[self.next...]) }
    var isEmpty: Bool { self.next >= self.bytes.count }
}
