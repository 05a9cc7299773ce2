/// Puts pictures of H.264 together from packets in order (RFC 6184): units of one time are one picture, whose last packet is marked. A value.
package struct H264Assembler: Sendable {
    package struct Picture: Sendable, Equatable {
        package var units: [[UInt8]]
        package var isKeyframe: Bool
        /// RTP time.
        package var time: UInt32
    }

    private var depacketizer = H264Depacketizer()
    private var units: [[UInt8]] = []
    private var bytes = 0
    private var time: UInt32?
    /// A packet of this picture is lost: it is of no use.
    private var isBroken = false
    /// Packets were lost, and no beginning of a picture has come since.
    private var isUnsure = false

    /// More is no picture of a camera.
    private static let mostUnits = 512
    private static let mostBytes = 8 << 20

    package init() {}

    /// Bytes of a picture that is not complete.
    var heldBytes: Int { self.bytes + self.depacketizer.heldBytes }

    /// Packets are lost here.
    package mutating func lose() {
        self.depacketizer = H264Depacketizer()
        self.units = []
        self.bytes = 0
        self.isBroken = true
        self.isUnsure = true
    }

    /// The pictures that are complete with this packet.
    package mutating func append(_ packet: RTPPacket) -> [Picture] {
        guard !packet.payload.isEmpty else { return [] }
        var done: [Picture] = []
        if let time = self.time, time != packet.time {
            // Some senders mark no packet.
            if let picture = self.finish() { done.append(picture) }
        }
        if self.time == nil, self.isUnsure {
            self.isUnsure = !Self.begins(packet.payload)
            self.isBroken = self.isUnsure
        }
        self.time = packet.time
        let units = self.depacketizer.append(packet.payload)
        self.bytes += units.reduce(0) { $0 + $1.count }
        self.units += units
        if self.units.count > Self.mostUnits || self.bytes > Self.mostBytes {
            self.isBroken = true
            self.units = []
        }
        if packet.isMarked, let picture = self.finish() { done.append(picture) }
        return done
    }

    /// Whether a picture begins here: with a delimiter, sets, several units together, or its first slice, whose first macroblock is number 0
    /// (ITU-T H.264 §7.3.3).
    private static func begins(_ payload: ArraySlice<UInt8>) -> Bool {
        let bytes = payload.prefix(3).map { $0 }
        guard let first = bytes.first else { return false }
        switch first & 0x1F {
        case 7, 9, 24: return true
        case 1, 5: return bytes.count > 1 && bytes[1] & 0x80 != 0
        case 28: return bytes.count > 2 && bytes[1] & 0x80 != 0 && bytes[2] & 0x80 != 0
        default: return false
        }
    }

    private mutating func finish() -> Picture? {
        defer { (self.units, self.bytes, self.time, self.isBroken) = ([], 0, nil, false) }
        // Parameter sets may come in a packet of an earlier picture's time; they are kept by whoever reads the units.
        guard let time = self.time, !self.isBroken, !self.units.isEmpty else { return nil }
        let isKeyframe = self.units.contains { ($0.first ?? 0) & 0x1F == 5 }
        return Picture(units: self.units, isKeyframe: isKeyframe, time: time)
    }
}
