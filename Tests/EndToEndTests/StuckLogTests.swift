import Foundation
import LibC
import RTMP
import ServerTestSupport
import TestSupport
import Testing

/// A log that nobody reads: a pipe with a buffer of one page.
@Suite struct StuckLogTests {
    /// A named pipe that is open for reading, and not read.
    private final class Fifo: @unchecked Sendable {
        // Only one task reads.
        let path: String
        private let descriptor: CInt
        private var bytes: [UInt8] = []

        init(_ path: String) throws {
            self.path = path
            try #require(mkfifo(path, 0o600) == 0)
            self.descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            try #require(self.descriptor >= 0)
            // F_SETPIPE_SZ
            try #require(fcntl(self.descriptor, 1031, 4_096) >= 4_096)
        }

        deinit { close(self.descriptor) }

        /// Reads the available bytes; returns all whole lines so far.
        func lines() -> [String] {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(self.descriptor, &buffer, buffer.count)
                guard count > 0 else { break }
                self.bytes += buffer[..<count]
            }
            let end = self.bytes.lastIndex(of: UInt8(ascii: "\n")) ?? 0
            return String(decoding: self.bytes[..<end], as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    /// Runs a server that logs to the pipe.
    private static func serve(_ body: (EarshotProcess, Fifo, _ directory: URL) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try "{log: {level: debug}, api: {rateLimit: 100000}}".write(to: config, atomically: true, encoding: .utf8)
            let fifo = try Fifo(directory.appendingPathComponent("log").path)
            let under = ["sh", "-c", "exec \"$@\" 2>'\(fifo.path)'", "sh"]
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: under) { server in
                try await body(server, fifo, directory)
            }
        }
    }

    @Test(.timeLimit(.minutes(5))) func viewersDoNotWaitForTheLogsReader() async throws {
        try await Self.serve { server, fifo, directory in
            // Each call logs an error line of some kilobytes.
            let text = String(repeating: "no ", count: 2_000)
            let sql = "CREATE TRIGGER no_rooms BEFORE INSERT ON rooms BEGIN SELECT RAISE(ABORT, '\(text)'); END"
            let script = "import sqlite3,sys; db=sqlite3.connect(sys.argv[1],timeout=20); db.execute(sys.argv[2]); db.commit()"
            let port = try Int(server.rtmp.split(separator: ":").last.map(String.init) ?? "").orThrow()
            let publisher = try await RawClient.publishing(port, "cam1")
            publisher.send(.video, SyntheticTag.videoHeader)
            let viewer = try await RawClient.playing(port, "cam1")
            let done = try await ClientProcess.run(["python3", "-c", script, "\(directory.path)/data/earshot.db", sql])
            #expect(done.status == 0, "\(done.errors)")
            var sent = 0
            for round in 0..<10 {
                for _ in 0..<40 {
                    let refused = try await HTTPAnswer.call(
                        "POST", "\(server.http)/api/v1/rooms", body: Data("{}".utf8), token: server.token)
                    #expect(refused.status == 503)
                }
                for _ in 0..<10 {
                    publisher.send(.video, SyntheticTag.video(sent, isKeyframe: round == 0, bytes: 1_000), timestamp: UInt32(sent * 40))
                    sent += 1
                }
                try await eventually("all frames while nobody reads the log") {
                    viewer.media().compactMap { SyntheticTag.number($0.message) } == Array(0..<sent)
                }
            }
            let counters = try await HTTPAnswer.get("\(server.http)/api/v1/counters", token: server.token).json()["data"]
            let dropped = try counters["logLinesDropped"].int.orThrow()
            #expect(dropped > 100, "\(dropped)")
            // The log is read now.
            try await eventually("the note") { fifo.lines().contains { $0.contains("not written because nobody read the log") } }
            let lines = fifo.lines()
            let note = try lines.first { $0.contains("not written because nobody read the log") }.orThrow()
            let told = try Int(note.split(separator: "=").last.map(String.init) ?? "").orThrow()
            #expect(told >= dropped, "\(note)")
            #expect(lines.allSatisfy { $0.hasPrefix("20") && $0.dropFirst(4).hasPrefix("-") }, "no line is torn")
            #expect(lines.count { $0.contains("The store failed") } + told >= 400)
        }
    }

    @Test(.timeLimit(.minutes(5))) func aStuckPipeDoesNotHoldTheEndUp() async throws {
        try await Self.serve { server, _, _ in
            for number in 0..<60 {
                _ = try await HTTPAnswer.call(
                    "POST", "\(server.http)/api/v1/rooms", body: Data(#"{"title":"\#(number)"}"#.utf8), token: server.token)
            }
            server.process.send(SIGTERM)
            #expect(try await server.process.outcome().status == 0)
        }
    }

    /// The last lines are in the log.
    @Test(.timeLimit(.minutes(5))) func anOrderlyEndWritesEverything() async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { server in
                server.process.send(SIGTERM)
                let outcome = try await server.process.outcome()
                #expect(outcome.status == 0 && outcome.errors.contains("Shutting down"), "\(outcome.errors)")
            }
        }
    }
}
