import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// The store of a running server, and `earshot store`.
@Suite struct StoreProcessTests {
    private static func create(_ id: String, _ server: EarshotProcess) async throws -> HTTPAnswer {
        try await HTTPAnswer.call("POST", "\(server.http)/api/v1/rooms", body: Data(#"{"roomId":"\#(id)"}"#.utf8), token: server.token)
    }

    private static func store(_ data: URL, _ arguments: String...) async throws -> ClientProcess.Outcome {
        try await EarshotProcess.command(["store"] + arguments + ["--data", data.path])
    }

    /// Without its data directory the server makes no rooms, and reports that to load balancers.
    @Test func aDeletedDataDirectoryIsTold() async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { server in
                let data = directory.appendingPathComponent("data")
                #expect(try await HTTPAnswer.get("\(server.http)/readyz").text == "ready\n")
                #expect(try await Self.create("before", server).status == 201)
                let away = directory.appendingPathComponent("away")
                try FileManager.default.moveItem(at: data, to: away)
                let refused = try await Self.create("lost", server)
                #expect(refused.status == 503 && refused.text.contains("data directory"), "\(refused.text)")
                try await eventually("the readiness to say so") {
                    let ready = try await HTTPAnswer.get("\(server.http)/readyz")
                    return ready.status == 503 && ready.text.contains("data directory")
                }
                #expect(try await HTTPAnswer.get("\(server.http)/healthz").status == 200)
                #expect(try await HTTPAnswer.get("\(server.http)/readyz/publish").status == 503)
                #expect(try await HTTPAnswer.get("\(server.http)/readyz/play").text == "ready\n")
                try FileManager.default.moveItem(at: away, to: data)
                try await eventually("the server to be ready") { try await HTTPAnswer.get("\(server.http)/readyz").status == 200 }
                #expect(try await Self.create("after", server).status == 201)
                let log = server.process.errorsSoFar
                #expect(log.components(separatedBy: "deleted or replaced").count == 2, "told once: \(log)")
                #expect(!log.contains("storeGone"), "\(log)")
            }
        }
    }

    @Test func checkBackupAndRestore() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data")
            let backup = directory.appendingPathComponent("backup")
            #expect(try await Self.store(data, "check").status == 3)
            try await EarshotProcess.serve(data: directory) { server in
                #expect(try await Self.create("kept", server).status == 201)
                let check = try await Self.store(data, "check")
                #expect(
                    check.status == 0 && check.text.contains("in use by a server") && check.text.contains("problems  none"), "\(check.text)"
                )
                let made = try await Self.store(data, "backup", backup.path + "/")
                #expect(made.status == 0 && made.text == "\(backup.path)\n", "\(made.errors)")
                let again = try await Self.store(data, "backup", backup.path)
                #expect(again.status == 4 && again.errors.contains("already exists"), "\(again.errors)")
                #expect(try await Self.create("later", server).status == 201)
                let busy = try await Self.store(data, "restore", backup.path)
                #expect(busy.status == 4 && busy.errors.contains("another server"), "\(busy.errors)")
                server.process.send(SIGTERM)
                #expect(try await server.process.outcome().status == 0)
                #expect(!server.process.errorsSoFar.contains("not closed cleanly"), "\(server.process.errorsSoFar)")
            }
            // The file alone is the store: its log is empty or gone.
            let log = data.appendingPathComponent("earshot.db-wal").path
            let bytes = FileManager.default.contents(atPath: log)?.count ?? 0
            #expect(bytes == 0)
            let json = try await Self.store(data, "check", "--json")
            let report = JSON(try JSONSerialization.jsonObject(with: json.output))
            #expect(report["ok"].bool == true && report["inUse"].bool == false && report["rows"]["rooms"].int == 2, "\(json.text)")
            let keys = try Data(contentsOf: data.appendingPathComponent("keys.json"))
            try FileManager.default.removeItem(at: data.appendingPathComponent("keys.json"))
            let restored = try await Self.store(data, "restore", backup.path)
            #expect(restored.status == 0 && restored.errors.contains("before-restore-"), "\(restored.errors)")
            #expect(try Data(contentsOf: data.appendingPathComponent("keys.json")) == keys)
            try await EarshotProcess.serve(data: directory) { server in
                func status(_ id: String) async throws -> Int {
                    try await HTTPAnswer.get("\(server.http)/api/v1/rooms/\(id)", token: server.token).status
                }
                let (kept, later) = (try await status("kept"), try await status("later"))
                #expect(kept == 200 && later == 404)
            }
        }
    }

    /// A killed server's log loses its end: the next start logs one line, keeps the file, and continues.
    @Test func aLogThatWasCutOffIsTold() async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { server in
                for number in 0..<30 { #expect(try await Self.create("room\(number)", server).status == 201) }
                server.process.send(SIGKILL)
                _ = try await server.process.outcome()
            }
            let data = directory.appendingPathComponent("data")
            let log = data.appendingPathComponent("earshot.db-wal")
            let bytes = try Data(contentsOf: log)
            try bytes.prefix(bytes.count - 20_000).write(to: log)
            let check = try await Self.store(data, "check")
            #expect(check.status == 1 && check.text.contains("cut off"), "\(check.text)")
            try await EarshotProcess.serve(data: directory) { server in
                try await eventually("the line") { server.process.errorsSoFar.contains("write-ahead log") }
                let lines = server.process.errorsSoFar.split(separator: "\n").filter { $0.contains("write-ahead log") }
                #expect(lines.count == 1 && lines.first?.contains("kept as") == true, "\(server.process.errorsSoFar)")
                // The check before the start has left the evidence in place.
                #expect(lines.first?.contains("cut off") == true, "\(lines)")
                let ready = try await HTTPAnswer.get("\(server.http)/readyz")
                #expect(ready.status == 200)
            }
            let kept = try FileManager.default.contentsOfDirectory(atPath: data.path).filter { $0.hasPrefix("earshot.db-wal.") }
            #expect(kept.count == 1)
        }
    }
}
