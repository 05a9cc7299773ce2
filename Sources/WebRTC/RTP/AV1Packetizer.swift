package import NIOCore

/// AV1 (RTP Payload Format For AV1, version 1.0): units one behind the other, cut where a packet is full. A value.
package struct AV1Packetizer: VideoPacketizer {
    /// AV1 §6.2.2.
    private enum Unit {
        static let sequenceHeader: UInt8 = 1
        static let delimiter: UInt8 = 2
        static let tileList: UInt8 = 8
        static let padding: UInt8 = 15
    }

    /// §4.4: the flags of the aggregation header.
    private enum Flag {
        static let continues: UInt8 = 0x80
        static let isContinued: UInt8 = 0x40
        static let beginsSequence: UInt8 = 0x08
    }

    private let number: UInt8
    /// The sequence header's unit, without its size.
    private var sequenceHeader: ByteBuffer?

    /// `units`: those of the configuration, a sequence header among them. `profile`: seq_profile.
    package init(_ units: ByteBuffer, profile: UInt8) {
        self.number = profile
        self.sequenceHeader = Self.units(of: units).first { Self.type($0) == Unit.sequenceHeader }
    }

    package var profile: VideoProfile { .av1(self.number) }

    package mutating func bundle(_ units: [ByteBuffer], time: Int64, isKeyframe: Bool) -> ByteBuffer? {
        // §5: delimiters are left out, and tile lists.
        var own = units.first.map { Self.units(of: $0) } ?? []
        own.removeAll { [Unit.delimiter, Unit.tileList, Unit.padding].contains(Self.type($0)) }
        guard !own.isEmpty else { return nil }
        if let header = own.first(where: { Self.type($0) == Unit.sequenceHeader }) {
            self.sequenceHeader = header
        } else if isKeyframe, let header = self.sequenceHeader {
            own.insert(header, at: 0)
        }
        var writer = PacketBundle.Writer(
            .video, time: time, isKeyframe: isKeyframe, profile: self.profile,
            capacity: Payload.capacity(own.reduce(0) { $0 + $1.readableBytes }))
        Self.add(own, beginsSequence: isKeyframe, to: &writer)
        return writer.finish()
    }

    /// Each packet but the last ends within a unit, and each but the first begins there: by that libwebrtc tells where a picture begins and ends.
    private static func add(_ units: [ByteBuffer], beginsSequence: Bool, to writer: inout PacketBundle.Writer) {
        let total = units.reduce(0) { $0 + $1.readableBytes + Self.sizeBytes($1.readableBytes) }
        let most = Payload.longest - 1
        // Of the same length, as far as sizes let them be: a piece has one more in each packet.
        let packets = (total + most - 4) / (most - 3)
        let room = min(most, (total + 3 * packets + packets - 1) / packets)
        var header = beginsSequence ? Flag.beginsSequence : 0
        var packet = ByteBuffer()
        func flush(isContinued: Bool, _ writer: inout PacketBundle.Writer) {
            writer.add([header | (isContinued ? Flag.isContinued : 0)], packet)
            header = isContinued ? Flag.continues : 0
            packet.clear()
        }
        for (index, unit) in units.enumerated() {
            var rest = unit
            while rest.readableBytes > 0 {
                let left = room - packet.readableBytes
                let whole = Self.sizeBytes(rest.readableBytes) + rest.readableBytes
                let isLast = index == units.count - 1
                // Room for a byte of the next unit, and its size.
                var count = whole + (isLast ? 0 : 2) <= left ? rest.readableBytes : min(rest.readableBytes, left - Self.sizeBytes(left))
                if count == rest.readableBytes, whole + (isLast ? 0 : 2) > left, count > 1 { count -= 1 }
                guard count > 0, let piece = rest.readSlice(length: count) else {
                    flush(isContinued: rest.readableBytes < unit.readableBytes, &writer)
                    continue
                }
                Self.write(size: count, to: &packet)
                packet.writeImmutableBuffer(piece)
                if rest.readableBytes > 0 { flush(isContinued: true, &writer) }
            }
        }
        if packet.readableBytes > 0 { flush(isContinued: false, &writer) }
    }

    // MARK: Units

    /// The units of a temporal unit, each without its size (AV1 §5.3). What cannot be read is left out, with all behind it.
    private static func units(of bytes: ByteBuffer) -> [ByteBuffer] {
        var units: [ByteBuffer] = []
        var rest = bytes
        while units.count < Payload.mostUnits, let header = rest.readInteger(as: UInt8.self), header & 0x80 == 0 {
            var unit = ByteBuffer(integer: header & ~0x02)
            if header & 0x04 != 0 {
                guard let layers = rest.readInteger(as: UInt8.self) else { break }
                unit.writeInteger(layers)
            }
            var length = rest.readableBytes
            if header & 0x02 != 0 {
                guard let size = Self.readSize(&rest) else { break }
                length = size
            }
            guard var body = rest.readSlice(length: length) else { break }
            unit.writeBuffer(&body)
            units.append(unit)
        }
        return units
    }

    private static func type(_ unit: ByteBuffer) -> UInt8 {
        unit.getInteger(at: unit.readerIndex, as: UInt8.self).map { $0 >> 3 & 0x0F } ?? 0
    }

    /// leb128() of AV1 §4.10.5.
    private static func readSize(_ bytes: inout ByteBuffer) -> Int? {
        var value = 0
        for index in 0..<4 {
            guard let byte = bytes.readInteger(as: UInt8.self) else { return nil }
            value |= Int(byte & 0x7F) << (7 * index)
            if byte & 0x80 == 0 { return value }
        }
        return nil
    }

    private static func sizeBytes(_ size: Int) -> Int { size < 0x80 ? 1 : size < 0x4000 ? 2 : size < 0x20_0000 ? 3 : 4 }

    private static func write(size: Int, to bytes: inout ByteBuffer) {
        var rest = size
        repeat {
            bytes.writeInteger(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
    }
}
