import EarshotServer
import Foundation
import ServerTestSupport
import TestSupport

extension TestServer {
    func recordings(_ query: String = "") async throws -> [JSON] { try await self.api("recordings\(query)")["list"].list }

    /// Waits until `count` recordings have this state. Returns them oldest first.
    func recordings(_ count: Int, _ state: String, within seconds: Double = 60) async throws -> [JSON] {
        try await eventually("\(count) recordings to be \(state)", within: seconds) {
            try await self.recordings("?state=\(state)").count == count
        }
        return try await self.recordings("?state=\(state)").reversed()
    }

    func recordingPath(_ recording: JSON) throws -> String { "\(self.dataDirectory)/recordings/\(try recording["file"].string.orThrow())" }

    func record(_ room: String, _ action: String) async throws -> HTTPAnswer {
        try await self.call("POST", "rooms/\(room)/record", #"{"action":"\#(action)"}"#)
    }

    /// The event kinds of one room, in order.
    func eventKinds(_ room: String) async throws -> [String] {
        try await self.api("rooms/\(room)/events?limit=1000")["list"].list.compactMap { $0["kind"].string }
    }
}

/// Hashes of a file's decoded frames, one per frame.
enum Decoded {
    static func hashes(_ file: String, _ kind: String) async throws -> [String] {
        let outcome = try await ClientProcess.run([
            "ffmpeg", "-v", "error", "-i", file, "-map", "0:\(kind)", "-f", "framehash", "-hash", "md5", "-",
        ])
        guard outcome.status == 0 else { throw TimedOut(description: "cannot decode \(file): \(outcome.errors)") }
        return outcome.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }
}

/// Properties of a file as ffprobe reports them.
struct ProbedFile: Sendable {
    let durationMs: Int
    let startMs: Int
    let codecs: [String]

    init(_ path: String) async throws {
        let outcome = try await ClientProcess.run([
            "ffprobe", "-v", "error", "-show_entries", "format=duration,start_time:stream=codec_name", "-of", "json", path,
        ])
        guard outcome.status == 0 else { throw TimedOut(description: "ffprobe \(path): \(outcome.errors)") }
        let json = JSON(try JSONSerialization.jsonObject(with: outcome.output))
        self.durationMs = Int((Double(json["format"]["duration"].string ?? "") ?? 0) * 1_000)
        self.startMs = Int((Double(json["format"]["start_time"].string ?? "") ?? 0) * 1_000)
        self.codecs = json["streams"].list.compactMap { $0["codec_name"].string }.sorted()
    }
}

extension PacketList {
    /// Whether these packets are a consecutive run of another list, without a gap.
    func isRun(of whole: PacketList) -> Bool {
        guard let first = self.hashes.first else { return false }
        return whole.hashes.indices.contains { start in
            whole.hashes[start] == first && whole.hashes[start...].prefix(self.count).elementsEqual(self.hashes)
        }
    }
}
