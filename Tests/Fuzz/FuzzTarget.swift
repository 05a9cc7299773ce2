/// One decoder, and the properties it keeps for any input. A plain value.
struct FuzzTarget: Sendable {
    let name: String
    /// The limit of one input, in bytes.
    let maxLength: Int
    /// The limit of one allocation, in MiB. It is small where nothing may be reserved for an announced length.
    let allocationMiB: Int
    /// The timeout of one input: a hundred times that of the slowest.
    let timeoutSeconds: Int
    /// Reads one input, and ends the process with a message if a property does not hold.
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
        .chunkValidator, .linkURL, .muxer, .audio, .snapshot, .jitter, .webSocket, .proxyHeader, .json, .addresses,
        .credentials, .token, .http1, .http2, .mesh, .channel, .tencent, .machine, .classroom, .board,
        .stun, .sessionOffer, .controlPackets, .packets, .otherPackets, .publishedPackets, .webRTCPeer,
    ]
}

/// A property that must hold. One that does not ends the process, which libFuzzer takes for a crash, and keeps the input; a test notes it instead.
func expect(_ isTrue: Bool, _ words: @autoclosure () -> String) {
    guard !isTrue else { return }
    guard let note = BrokenProperty.note else { fatalError(words()) }
    note(words())
}

/// What is to be done when a property does not hold.
enum BrokenProperty {
    @TaskLocal static var note: (@Sendable (String) -> Void)?
}

/// Whether the values are equal, or print the same and hold a peer's NaN, which equals nothing.
func areSame<Value: Equatable>(_ one: Value, _ other: Value) -> Bool {
    if one == other { return true }
    let text = "\(one)"
    return text.contains("nan") && text == "\(other)"
}

/// One input. Its first bytes choose what the target does; the rest are the peer's bytes.
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

    /// The next `count` bytes, or fewer at the end.
    mutating func pop(_ count: Int) -> [UInt8] {
        let end = min(self.bytes.count, self.next + count)
        defer { self.next = end }
        return Array(self.bytes[self.next..<end])
    }

    /// The bytes not yet read.
    var rest: [UInt8] { Array(self.bytes[self.next...]) }
    var isEmpty: Bool { self.next >= self.bytes.count }
}
