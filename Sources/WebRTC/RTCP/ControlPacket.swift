/// What a client's RTCP says, as far as it matters here (RFC 3550 §6, RFC 4585 §6, RFC 5104 §4.3.1). A value.
package enum ControlPacket: Sendable, Equatable {
    /// What a publisher has sent of a track.
    case sent(SenderReport)
    /// How one of our tracks arrives.
    case report(ReceptionReport)
    /// Packets that are missing, by sequence number: RFC 4585 §6.2.1.
    case missing(source: UInt32, [UInt16])
    /// The viewer can decode nothing until the next keyframe: PLI, or FIR.
    case keyframeWanted(source: UInt32)
    /// When each packet came, of all tracks.
    case arrivals(Arrivals)
    case goodbye

    /// draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
    package struct Arrivals: Sendable, Equatable {
        /// The transport-wide number of the first packet.
        package var first: UInt16
        /// By number, on the client's clock, which begins anew every twelve days; nil: it has not come.
        package var timesUs: [Int64?]
    }

    package struct ReceptionReport: Sendable, Equatable {
        package var source: UInt32
        /// Of 256, since the last report.
        package var fractionLost: UInt8
        /// In all.
        package var lost: Int32
        package var highestSequence: UInt32
        /// In units of the track's clock.
        package var jitter: UInt32
        /// The middle of the last sender report's NTP time, and the time since it came, in 65,536ths of a second; 0: none has.
        package var lastReport: UInt32
        package var sinceLastReport: UInt32
    }

    private enum PacketType {
        static let senderReport: UInt8 = 200
        static let receiverReport: UInt8 = 201
        static let goodbye: UInt8 = 203
        static let transportFeedback: UInt8 = 205
        static let payloadFeedback: UInt8 = 206
    }

    /// Packets of one compound packet that are read.
    private static let mostPackets = 32
    private static let mostMissing = 512
    /// Packets of one report of arrivals, which come many times a second; and such reports of one compound packet.
    private static let mostArrivals = 1_024
    private static let mostArrivalReports = 4

    /// Reads a clear compound packet; stops at what it cannot be.
    package static func parse(_ bytes: [UInt8]) -> [ControlPacket] {
        bytes.withUnsafeBytes { bytes in
            var found: [ControlPacket] = []
            var offset = 0
            for _ in 0..<Self.mostPackets {
                guard offset + 4 <= bytes.count, bytes[offset] >> 6 == 2 else { break }
                let length = 4 * (Int(Self.integer16(bytes, offset + 2)) + 1)
                guard offset + length <= bytes.count else { break }
                Self.read(UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + length)]), &found)
                offset += length
            }
            return found
        }
    }

    private static func read(_ packet: UnsafeRawBufferPointer, _ found: inout [ControlPacket]) {
        let count = packet[0] & 0x1F
        switch packet[1] {
        case PacketType.senderReport where packet.count >= 28:
            found.append(
                .sent(
                    SenderReport(
                        source: Self.integer32(packet, 4),
                        ntp: UInt64(Self.integer32(packet, 8)) << 32 | UInt64(Self.integer32(packet, 12)),
                        rtpTime: Self.integer32(packet, 16), packets: Self.integer32(packet, 20), octets: Self.integer32(packet, 24))))
        case PacketType.receiverReport:
            for index in 0..<Int(count) {
                let at = 8 + 24 * index
                guard at + 24 <= packet.count else { return }
                let lost = Self.integer32(packet, at + 4)
                found.append(
                    .report(
                        ReceptionReport(
                            source: Self.integer32(packet, at), fractionLost: UInt8(truncatingIfNeeded: lost >> 24),
                            // 24 bits, signed.
                            lost: Int32(truncatingIfNeeded: lost << 8) >> 8, highestSequence: Self.integer32(packet, at + 8),
                            jitter: Self.integer32(packet, at + 12), lastReport: Self.integer32(packet, at + 16),
                            sinceLastReport: Self.integer32(packet, at + 20))))
            }
        case PacketType.goodbye: found.append(.goodbye)
        case PacketType.transportFeedback where count == 1: Self.readMissing(packet, &found)
        case PacketType.transportFeedback where count == 15:
            let reports = found.count { if case .arrivals = $0 { true } else { false } }
            if reports < Self.mostArrivalReports, let arrivals = Self.arrivals(packet) { found.append(.arrivals(arrivals)) }
        case PacketType.payloadFeedback where count == 1 && packet.count >= 12:
            found.append(.keyframeWanted(source: Self.integer32(packet, 8)))
        case PacketType.payloadFeedback where count == 4:
            // RFC 5104 §4.3.1.1: the sources are in the entries, eight bytes each.
            for at in stride(from: 12, to: packet.count - 7, by: 8) { found.append(.keyframeWanted(source: Self.integer32(packet, at))) }
        default: break
        }
    }

    private static func readMissing(_ packet: UnsafeRawBufferPointer, _ found: inout [ControlPacket]) {
        guard packet.count >= 12 else { return }
        var missing: [UInt16] = []
        for at in stride(from: 12, to: packet.count - 3, by: 4) {
            let first = Self.integer16(packet, at)
            let more = Self.integer16(packet, at + 2)
            missing.append(first)
            for bit in 0..<UInt16(16) where more & 1 << bit != 0 { missing.append(first &+ bit &+ 1) }
            guard missing.count < Self.mostMissing else { break }
        }
        if !missing.isEmpty { found.append(.missing(source: Self.integer32(packet, 8), missing)) }
    }

    /// ```
    /// header 4 | sender 4 | source 4 | first number 2 | packets 2 | time 3, of 64 ms | number of the report 1 | chunks of 2 | differences of 250 µs
    /// ```
    private static func arrivals(_ packet: UnsafeRawBufferPointer) -> Arrivals? {
        guard packet.count >= 20 else { return nil }
        let count = Int(Self.integer16(packet, 14))
        guard (1...Self.mostArrivals).contains(count) else { return nil }
        var statuses: [UInt8] = []
        statuses.reserveCapacity(count)
        var at = 20
        while statuses.count < count {
            guard at + 2 <= packet.count else { return nil }
            let chunk = Self.integer16(packet, at)
            at += 2
            let room = count - statuses.count
            switch (chunk >> 15, chunk >> 14 & 1) {
            // A run: status 2 bits | length 13.
            case (0, _): statuses += Array(repeating: UInt8(truncatingIfNeeded: chunk >> 13 & 3), count: min(room, Int(chunk & 0x1FFF)))
            case (_, 0): for bit in 0..<min(room, 14) { statuses.append(UInt8(truncatingIfNeeded: chunk >> (13 - bit) & 1)) }
            default: for pair in 0..<min(room, 7) { statuses.append(UInt8(truncatingIfNeeded: chunk >> (12 - 2 * pair) & 3)) }
            }
            // A run of nothing would never end.
            guard chunk & 0x9FFF != 0 || chunk >> 15 == 1 else { return nil }
        }
        var timeUs = Int64(Self.integer32(packet, 16) >> 8) * 64_000
        var times: [Int64?] = []
        times.reserveCapacity(count)
        for status in statuses {
            switch status {
            case 1:
                guard at < packet.count else { return nil }
                timeUs += Int64(packet[at]) * 250
                at += 1
                times.append(timeUs)
            case 2:
                guard at + 2 <= packet.count else { return nil }
                timeUs += Int64(Int16(bitPattern: Self.integer16(packet, at))) * 250
                at += 2
                times.append(timeUs)
            default: times.append(nil)
            }
        }
        return Arrivals(first: Self.integer16(packet, 12), timesUs: times)
    }

    private static func integer16(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt16 {
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self).bigEndian
    }

    private static func integer32(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self).bigEndian
    }
}

/// A sender report: what a track's time is on the clock that it shares with the other (RFC 3550 §6.4.1). A value.
package struct SenderReport: Sendable, Equatable {
    package var source: UInt32
    /// Seconds since 1900 and their 2³²nds.
    package var ntp: UInt64
    package var rtpTime: UInt32
    package var packets: UInt32
    package var octets: UInt32

    /// A compound packet: the reports, then the name that makes the tracks one source (§6.5).
    package static func compound(_ reports: [SenderReport], name: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for report in reports {
            bytes += [0x80, 200, 0, 6]
            bytes.append32(report.source)
            bytes.append32(UInt32(truncatingIfNeeded: report.ntp >> 32))
            bytes.append32(UInt32(truncatingIfNeeded: report.ntp))
            bytes.append32(report.rtpTime)
            bytes.append32(report.packets)
            bytes.append32(report.octets)
        }
        return bytes + Self.names(reports.map(\.source), name)
    }

    /// The name of these sources (§6.5).
    static func names(_ sources: [UInt32], _ name: String) -> [UInt8] {
        var chunks: [UInt8] = []
        for source in sources {
            chunks.append32(source)
            let name = name.utf8.prefix(255)
            chunks += [1, UInt8(truncatingIfNeeded: name.count)]
            chunks += name
            // An item of type 0 ends the chunk, at a multiple of four.
            chunks.append(0)
            while chunks.count % 4 != 0 { chunks.append(0) }
        }
        var bytes: [UInt8] = [0x80 | UInt8(truncatingIfNeeded: sources.count), 202]
        bytes.append16(UInt16(truncatingIfNeeded: chunks.count / 4))
        return bytes + chunks
    }

    /// A goodbye of these sources (§6.6).
    package static func goodbye(_ sources: [UInt32]) -> [UInt8] {
        var bytes: [UInt8] = [0x80 | UInt8(truncatingIfNeeded: sources.count), 203]
        bytes.append16(UInt16(truncatingIfNeeded: sources.count))
        for source in sources { bytes.append32(source) }
        return bytes
    }
}
