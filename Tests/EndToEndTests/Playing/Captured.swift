import Foundation
import Media
import NIOCore
import ServerTestSupport
import TestSupport

@testable import EarshotServer
@testable import Support

/// The output of a stream in one format: a file for each run of one type.
struct Captured: Sendable {
    struct Run: Sendable {
        /// The type that the output gave; empty if it gives none.
        let mimeType: String
        let file: String
    }

    var runs: [Run] = []

    /// Hashes of the decoded pictures of all runs.
    func pictures() async throws -> [String] {
        var all: [String] = []
        for run in self.runs { all += try await Self.pictures(of: run.file) }
        return all
    }

    /// Hashes of a file's decoded pictures, whatever their times. Uses an ffmpeg that knows Enhanced FLV.
    static func pictures(of file: String) async throws -> [String] {
        let outcome = try await ClientProcess.run(
            [
                try await NewFFmpeg.path(), "-v", "error", "-i", file, "-map", "0:v?", "-an", "-fps_mode", "passthrough", "-f", "framehash",
                "-hash", "md5", "-",
            ], within: 60)
        return outcome.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// Returns nil if they are the same, otherwise a description of the difference.
    static func difference(_ shown: [String], from pushed: some Collection<String>) -> String? {
        if shown.elementsEqual(pushed) { return nil }
        let same = zip(shown, pushed).prefix { $0.0 == $0.1 }.count
        return "\(shown.count) pictures, expected \(pushed.count); the first \(same) are the same"
    }

    /// The codecs of the file's tracks: "aac av1".
    static func codecs(of file: String) async throws -> String {
        try await ProbedFile(file).codecs.joined(separator: " ")
    }

    // MARK: Outputs

    /// Fetches `.mp4` over HTTP, again whenever its body ends, until the stream is over. Throws if a body does not end properly.
    static func bodies(_ server: TestServer, _ name: String, in directory: URL) async throws -> Captured {
        var captured = Captured()
        while true {
            let answer = try await HTTPAnswer.get("\(server.http)/live/\(name).mp4")
            guard answer.status == 200 else { return captured }
            let file = directory.appendingPathComponent("body\(captured.runs.count).mp4")
            try answer.body.write(to: file)
            captured.runs.append(Run(mimeType: answer.contentType ?? "", file: file.path))
        }
    }

    /// Reads `.fmp4` over a WebSocket to its end. Each text gives the type of the pieces that follow it.
    static func messages(_ server: TestServer, _ name: String, in directory: URL) async throws -> Captured {
        let socket = try await WebSocketClient.open(server.addresses.http.port, "/live/\(name).fmp4")
        try await eventually("the end of \(name).fmp4", within: 60) { try socket.closeCode != nil }
        guard try socket.closeCode == 1000 else { throw TimedOut(description: "closed with \(try socket.closeCode ?? 0)") }
        var captured = Captured()
        var runs: [(type: String, bytes: Data)] = []
        for frame in try socket.all {
            switch frame.opcode {
            case 1:
                let type = JSON(try JSONSerialization.jsonObject(with: Data(frame.payload)))["mimeType"].string
                runs.append((try type.orThrow(), Data()))
            case 2 where runs.isEmpty: throw TimedOut(description: "the first message is no type")
            case 2: runs[runs.count - 1].bytes.append(contentsOf: frame.payload)
            default: break
            }
        }
        for (index, run) in runs.enumerated() {
            let file = directory.appendingPathComponent("messages\(index).mp4")
            try run.bytes.write(to: file)
            captured.runs.append(Run(mimeType: run.type, file: file.path))
        }
        await socket.close()
        return captured
    }

    /// Reads HTTP-FLV to its end, and starts a new file for each video codec.
    static func tags(_ url: String, in directory: URL) async throws -> Captured {
        let answer = try await HTTPAnswer.get(url)
        guard answer.status == 200 else { throw TimedOut(description: "\(url): \(answer.status)") }
        let id = UUID().uuidString
        let whole = directory.appendingPathComponent("\(id).flv")
        try answer.body.write(to: whole)
        var parts: [[FLVTag]] = [[]]
        var codec: TagInfo.Codec?
        for tag in try FLVFile.read(whole.path) where !tag.isFiller {
            let frame = try Frame(kind: tag.kind, timestamp: 0, payload: ByteBuffer(bytes: tag.payload))
            if tag.kind == .video, let next = frame.tag.codec {
                if let codec, next != codec { parts.append([]) }
                codec = next
            }
            parts[parts.count - 1].append(tag)
        }
        var captured = Captured()
        for (index, part) in parts.enumerated() {
            let file = directory.appendingPathComponent("\(id).\(index).flv").path
            try FLVFile.write(part, to: file)
            captured.runs.append(Run(mimeType: "", file: file))
        }
        return captured
    }

    /// Fetches everything that a media playlist lists, as a file for each initialization section.
    static func segments(_ live: LiveHLS, _ server: TestServer, _ name: String, in directory: URL) async throws -> Captured {
        let text = try await live.playlist().text
        guard text.contains("#EXT-X-ENDLIST") else { throw TimedOut(description: "the playlist has no end: \(text)") }
        var runs: [Data] = []
        for line in text.split(separator: "\n") {
            let isMap = line.hasPrefix("#EXT-X-MAP:")
            guard isMap || !line.hasPrefix("#") else { continue }
            let uri = isMap ? line.split(separator: "\"")[1] : line
            let bytes = try await HTTPAnswer.get("\(server.http)/live/\(name).hls/\(uri)")
            guard bytes.status == 200 else { throw TimedOut(description: "\(uri): \(bytes.status)") }
            if isMap { runs.append(bytes.body) } else { runs[runs.count - 1].append(bytes.body) }
        }
        var captured = Captured()
        for (index, run) in runs.enumerated() {
            let file = directory.appendingPathComponent("segments\(index).mp4")
            try run.write(to: file)
            captured.runs.append(Run(mimeType: "", file: file.path))
        }
        return captured
    }

    /// The files of a finished recording, in order.
    static func recordings(_ server: TestServer, _ count: Int) async throws -> Captured {
        let all = try await server.recordings(count, "finished")
        return Captured(runs: try all.map { Run(mimeType: "", file: try server.recordingPath($0)) })
    }
}
