import Foundation
import TestSupport

/// A packet as ffprobe reads it from a file.
struct ProbedPacket: Hashable, CustomStringConvertible {
    var kind: String
    /// Seconds.
    var pts: Double
    var dts: Double
    var duration: Double
    var isKeyframe: Bool
    /// The offset in the file in bytes; nil if the format has none.
    var position: Int?
    /// Bytes.
    var size: Int?
    var hash: String

    var description: String { "\(self.kind) \(self.dts)/\(self.pts)+\(self.duration) \(self.hash.suffix(6))" }
}

enum Probe {
    /// Returns all packets in file order. Warnings of ffprobe count as errors unless `warnings` is false.
    static func packets(_ path: String, warnings: Bool = true) async throws -> [ProbedPacket] {
        let outcome = try await Tool.must([
            "ffprobe", "-v", "warning", "-show_packets", "-show_data_hash", "md5", "-show_entries",
            "packet=codec_type,pts_time,dts_time,duration_time,pos,size,flags,data_hash", "-of", "json", path,
        ])
        if warnings, !outcome.errors.isEmpty { throw Tool.Failed(description: "ffprobe of \(path): \(outcome.errors)") }
        struct Answer: Decodable {
            struct Packet: Decodable {
                var codec_type: String
                var pts_time: String?
                var dts_time: String?
                var duration_time: String?
                var flags: String
                var pos: String?
                var size: String?
                var data_hash: String
            }
            var packets: [Packet]
        }
        return try JSONDecoder().decode(Answer.self, from: outcome.output).packets.map {
            ProbedPacket(
                kind: $0.codec_type, pts: $0.pts_time.flatMap(Double.init) ?? .nan, dts: $0.dts_time.flatMap(Double.init) ?? .nan,
                duration: $0.duration_time.flatMap(Double.init) ?? 0, isKeyframe: $0.flags.hasPrefix("K"),
                position: $0.pos.flatMap { Int($0) }, size: $0.size.flatMap { Int($0) },
                hash: $0.data_hash)
        }
    }
}
