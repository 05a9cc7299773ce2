import Foundation

/// One audio or video packet as a demuxer sees it.
package struct Packet: Hashable, Sendable, CustomStringConvertible {
    package let kind: String
    package let pts: Int?
    package let dts: Int?
    package let isKeyframe: Bool
    package let hash: String

    package var description: String {
        "\(self.kind) pts \(self.pts ?? -1) dts \(self.dts ?? -1) \(self.isKeyframe ? "key " : "")\(self.hash.suffix(8))"
    }
}

/// The packets of a file, or those a player received, in order of arrival.
package struct PacketList: Sendable {
    package var packets: [Packet]

    package init(_ packets: [Packet]) { self.packets = packets }

    /// Parses the output of ``Probe/packets(_:)``. Skips script data, which ffprobe calls subtitles.
    package init(csv: String) {
        self.packets = []
        var pending: [String] = []
        for line in csv.split(separator: "\n") {
            let fields = line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            if fields[0] == "packet" { pending = Array(fields.prefix(5)) }
            // Side data (a new sequence header) may split a packet's fields over two lines; the rest follows behind it.
            guard let hash = fields.first(where: { $0.hasPrefix("MD5:") }), pending.count == 5 else { continue }
            if pending[1] == "video" || pending[1] == "audio" {
                self.packets.append(
                    Packet(kind: pending[1], pts: Int(pending[2]), dts: Int(pending[3]), isKeyframe: pending[4].hasPrefix("K"), hash: hash))
            }
            pending = []
        }
    }

    package static func of(file: String) async throws -> PacketList {
        PacketList(csv: try await ClientProcess.run(Probe.packets(file)).text)
    }

    package func only(_ kind: String) -> PacketList { PacketList(self.packets.filter { $0.kind == kind }) }
    package var hashes: [String] { self.packets.map(\.hash) }
    package var count: Int { self.packets.count }

    /// Nil when both are equal; otherwise the first difference.
    package func difference(from expected: PacketList) -> String? {
        if expected.packets.isEmpty { return "nothing was expected" }
        for (index, pair) in zip(self.packets, expected.packets).enumerated() where pair.0 != pair.1 {
            return "packet \(index): got \(pair.0), expected \(pair.1)"
        }
        return self.count == expected.count ? nil : "got \(self.count) packets, expected \(expected.count)"
    }

    /// Nil when this is a real tail of `whole`: it starts later, and from there on nothing is missing, doubled or changed.
    package func tailDifference(of whole: PacketList) -> String? {
        guard let first = self.packets.first else { return "no packets" }
        guard let start = whole.packets.firstIndex(of: first) else { return "the first packet is not one of the source: \(first)" }
        guard start > 0 else { return "the tail is the whole" }
        return self.difference(from: PacketList(Array(whole.packets[start...])))
    }

    /// Nil when each kind is a prefix of the first source, then the whole second source.
    /// No timestamp may go back.
    package func joinDifference(first: PacketList, second: PacketList, firstIsWhole: Bool = false) -> String? {
        for kind in ["video", "audio"] {
            let (got, one, two) = (self.only(kind), first.only(kind), second.only(kind))
            if let what = got.orderProblem { return "\(kind): \(what)" }
            let common = zip(got.hashes, one.hashes).prefix { $0.0 == $0.1 }.count
            if common == 0 { return "\(kind): nothing of the first push" }
            if firstIsWhole, common < one.count { return "\(kind): \(common) of \(one.count) of the first push" }
            // From another encoder, the first picture also carries its parameter sets.
            let added = kind == "video" ? 1 : 0
            let rest = Array(got.hashes[common...])
            if rest.count != two.count || rest.dropFirst(added) != two.hashes.dropFirst(added) {
                return "\(kind): after \(common) of the first, \(rest.count) others, expected \(two.count)"
            }
        }
        return nil
    }

    /// Nil when decode times never go back.
    package var orderProblem: String? {
        for (earlier, later) in zip(self.packets, self.packets.dropFirst()) {
            guard let before = earlier.dts, let after = later.dts, after >= before else { return "\(later) after \(earlier)" }
        }
        return nil
    }
}
