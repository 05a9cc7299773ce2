import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import ServerConfiguration

/// A recording's file over HTTP, whole and in ranges.
@Suite struct RecordingDownloadTests {
    @Test func rangesAreBytesOfTheFile() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3)
        try await TestServer.run({
            $0.recording.apps = ["live"]
            $0.rooms.policy.cleanStopMs = 200
        }) { server in
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")).status == 0)
            let recording = try await server.recordings(1, "finished")[0]
            let path = "recordings/\(try recording["recordingId"].string.orThrow())/file"
            let file = try Data(contentsOf: URL(fileURLWithPath: server.recordingPath(recording)))
            let size = file.count

            let whole = try await server.call("GET", path)
            #expect(whole.status == 200 && whole.body == file)
            #expect(whole.contentType == "video/mp4" && whole.headers["accept-ranges"] == "bytes")
            #expect(whole.headers["content-length"] == "\(size)")
            let name = try whole.headers["content-disposition"].orThrow()
            #expect(name.wholeMatch(of: /attachment; filename="cam1-\d{8}T\d{6}Z-[0-9a-f]{16}\.mp4"/) != nil, "\(name)")
            let etag = try whole.headers["etag"].orThrow()

            let head = try await server.call("HEAD", path, headers: ["Range": "bytes=0-9"])
            #expect(head.status == 200 && head.body.isEmpty && head.headers["content-length"] == "\(size)")

            let ranges: [(String, Range<Int>)] = [
                ("bytes=0-0", 0..<1), ("bytes=10-99", 10..<100), ("bytes=\(size - 1)-", size - 1..<size), ("bytes=-500", size - 500..<size),
                ("bytes=0-\(size + 100)", 0..<size), ("bytes=1000-", 1_000..<size),
            ]
            for (text, part) in ranges {
                let answer = try await server.call("GET", path, headers: ["Range": text])
                #expect(answer.status == 206 && answer.body == file[part], "\(text)")
                #expect(answer.headers["content-range"] == "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)", "\(text)")
                #expect(answer.headers["content-length"] == "\(part.count)", "\(text)")
            }
            for text in ["bytes=\(size)-", "bytes=-0", "bytes=999999999999999999999-"] {
                let answer = try await server.call("GET", path, headers: ["Range": text])
                #expect(answer.status == 416 && answer.headers["content-range"] == "bytes */\(size)", "\(text)")
                #expect(try answer.json()["error"]["field"].string == "Range", "\(text)")
            }
            for text in ["bytes=0-1,4-5", "items=0-1", "bytes=5-1", "nonsense"] {
                let answer = try await server.call("GET", path, headers: ["Range": text])
                #expect(answer.status == 200 && answer.body == file, "\(text)")
            }
            let same = try await server.call("GET", path, headers: ["Range": "bytes=0-9", "If-Range": etag])
            #expect(same.status == 206 && same.body.count == 10)
            let other = try await server.call("GET", path, headers: ["Range": "bytes=0-9", "If-Range": "\"x\""])
            #expect(other.status == 200 && other.body == file)

            for text in [etag, "W/\(etag)", "\"x\", \(etag)", "*"] {
                let known = try await server.call("GET", path, headers: ["If-None-Match": text, "Range": "bytes=0-9"])
                #expect(known.status == 304 && known.body.isEmpty && known.headers["etag"] == etag, "\(text)")
            }
            #expect(try await server.call("GET", path, headers: ["If-None-Match": "\"x\""]).body == file)

            // Neither without a token, nor with one of too low a role.
            #expect(try await server.call("GET", path, token: "").status == 401)
            let low = try await server.call("POST", "tokens", #"{"name":"low","role":"backend"}"#).json()["data"]["secret"].string.orThrow()
            #expect(try await server.call("GET", path, token: low).status == 403)

            // As a browser does: ranges on demand, with seeking.
            let seek = try await ClientProcess.run([
                "ffmpeg", "-v", "error", "-headers", "Authorization: Bearer \(server.token)\r\n", "-ss", "2", "-i",
                "\(server.http)/api/v1/\(path)", "-frames:v", "1", "-f", "framehash", "-hash", "md5", "-",
            ])
            #expect(seek.status == 0 && seek.text.contains("0, "), "\(seek.errors)")
        }
    }

    /// A client that stops reading delays nobody, and one that disconnects leaves no file open.
    @Test func aDownloadThatIsBrokenOffIsOver() async throws {
        let big = ["-c:v", "libx264", "-profile:v", "baseline", "-g", "25", "-qp", "2"]
        let source = try await Fixture.flv(video: big, audio: nil, seconds: 10, size: "1280x720")
        try await TestServer.run({
            $0.recording.apps = ["live"]
            $0.rooms.policy.cleanStopMs = 200
        }) { server in
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1")).status == 0)
            let recording = try await server.recordings(1, "finished")[0]
            #expect((recording["bytes"].int ?? 0) > 4 << 20)
            let file = try URL(fileURLWithPath: server.recordingPath(recording)).resolvingSymlinksInPath().path
            let url = "\(server.http)/api/v1/recordings/\(try recording["recordingId"].string.orThrow())/file"
            let slow = try ClientProcess(["curl", "-s", "--limit-rate", "1000", "-H", "Authorization: Bearer \(server.token)", url])
            defer { slow.send(SIGKILL) }
            func isOpen() throws -> Bool {
                let folder = "/proc/self/fd"
                return try FileManager.default.contentsOfDirectory(atPath: folder).contains {
                    (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")) == file
                }
            }
            try await eventually("the file to be open") { try isOpen() }
            #expect(try await server.api("selfcheck")["ok"].bool == true)
            slow.send(SIGKILL)
            try await eventually("the file to be closed") { try !isOpen() }
        }
    }
}
