import LibC
import NIOCore
import RTMP

/// The state of a chunk stream, and the message that is arriving on it. Part of a `ChunkReader`.
struct PartialMessage {
    let id: UInt32
    var length = 0
    var type: UInt8 = 0
    var streamID: UInt32 = 0
    private(set) var isExtended = false
    private(set) var isStarted = false
    private var timestamp: UInt32 = 0
    private var timestampField: UInt32 = 0
    private var received = 0
    /// The first bytes of a frame: tag header and stamp. All bytes of other messages.
    private var head: [UInt8] = []
    private var stamp: Stamp?
    private var isIntact = true

    private static let headLength = 64
    private static let commandFrame: UInt8 = 5

    init(id: UInt32) {
        self.id = id
        self.head.reserveCapacity(Self.headLength)
    }

    var remaining: Int { self.length - self.received }

    private var isFrame: Bool { self.type == MessageType.video.rawValue || self.type == MessageType.audio.rawValue }
    private var prefix: Int { self.type == MessageType.video.rawValue ? TagPrefix.video : TagPrefix.audio }

    mutating func start(timestampField: UInt32, isAbsolute: Bool, isExtended: Bool) {
        self.timestampField = timestampField
        self.timestamp = isAbsolute ? timestampField : self.timestamp &+ timestampField
        self.isExtended = isExtended
        self.isStarted = true
    }

    /// fmt 3: continues a message, or starts one with the last header again (RTMP 1.0 §5.3.1.2.4).
    mutating func continueOrRepeat() {
        guard !self.isStarted else { return }
        self.timestamp &+= self.timestampField
        self.isStarted = true
    }

    mutating func receive(_ piece: UnsafeRawBufferPointer) {
        let start = self.received
        self.received += piece.count
        guard self.isFrame else {
            self.head.append(contentsOf: piece)
            return
        }
        var checked = 0
        if start < Self.headLength {
            checked = min(Self.headLength - start, piece.count)
            self.head.append(contentsOf: piece[..<checked])
            if self.head.count == min(Self.headLength, self.length) { self.readHead() }
        }
        if let stamp = self.stamp, checked < piece.count {
            let expected = Pattern.fill(sequence: stamp.sequence, start + checked..<start + piece.count)
            if !Self.isEqual(UnsafeRawBufferPointer(rebasing: piece[checked...]), expected) { self.isIntact = false }
        }
    }

    private mutating func readHead() {
        let prefix = self.prefix
        let bodyStart = prefix + Stamp.byteCount
        guard self.head.count >= bodyStart else { return }
        let stamp = self.head.withUnsafeBytes { Stamp(UnsafeRawBufferPointer(rebasing: $0[prefix...])) }
        guard let stamp else { return }
        self.stamp = stamp
        self.isIntact = self.head.withUnsafeBytes { head in
            let expected = Pattern.fill(sequence: stamp.sequence, bodyStart..<head.count)
            return Self.isEqual(UnsafeRawBufferPointer(rebasing: head[bodyStart...]), expected)
        }
    }

    private static func isEqual(_ found: UnsafeRawBufferPointer, _ expected: UnsafeRawBufferPointer) -> Bool {
        guard let found = found.baseAddress, let reference = expected.baseAddress else { return true }
        return memcmp(found, reference, expected.count) == 0
    }

    /// Ends a complete message: counts a frame, returns anything else.
    mutating func finish(room: Int, nowNs: UInt64, check: inout StreamCheck) -> Message? {
        defer {
            self.received = 0
            self.isStarted = false
            self.head.removeAll(keepingCapacity: true)
            self.stamp = nil
            self.isIntact = true
        }
        guard self.isFrame else {
            return Message(
                type: MessageType(rawValue: self.type), streamID: self.streamID, timestamp: self.timestamp,
                payload: ByteBuffer(bytes: self.head))
        }
        // Packet type 0 is a sequence header; some servers also send empty frames.
        guard self.head.count > 1, self.head[1] != 0 else { return nil }
        let isVideo = self.type == MessageType.video.rawValue
        // Command frames (Adobe FLV 10.1 §E.4.3.1) are not the publisher's: the server fills pauses with them.
        if isVideo, self.head[0] >> 4 & 7 == Self.commandFrame { return nil }
        check.received(
            self.stamp, isVideo: isVideo, isKeyframe: isVideo && self.head[0] >> 4 == 1, isIntact: self.isIntact, length: self.length,
            timestamp: self.timestamp, room: room, nowNs: nowNs)
        return nil
    }
}
