import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// A server whose store cannot grow: the system refuses to lengthen files, as a full disk does.
@Suite struct FullDiskTests {
    @Test(.timeLimit(.minutes(5))) func factsWaitAndAreShown() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { server in
                func limit(_ bytes: String) async throws {
                    let outcome = try await ClientProcess.run(["prlimit", "--pid", "\(server.process.id)", "--fsize=\(bytes):unlimited"])
                    #expect(outcome.status == 0, "\(outcome.errors)")
                }
                func metric(_ name: String) async throws -> Double? {
                    let text = try await HTTPAnswer.get("\(server.http)/metrics", token: server.token).text
                    return text.split(separator: "\n").first { $0.hasPrefix("earshot_store_\(name) ") }
                        .flatMap { Double($0.split(separator: " ").last ?? "") }
                }
                func state() async throws -> String? {
                    try await HTTPAnswer.get("\(server.http)/api/v1/rooms/cam1", token: server.token).json()["data"]["state"].string
                }
                let push = try ClientProcess(FFmpeg.push(source, to: "\(server.rtmp)/live/cam1"))
                defer { push.send(SIGKILL) }
                try await eventually("the room") { try await state() == "live" }
                try await limit("1")
                let refused = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/cam2"))
                #expect(refused.status != 0 && refused.errors.contains("registry_unavailable"), "\(refused.errors)")
                push.send(SIGKILL)
                try await eventually("a fact that waits") {
                    let (failing, waiting) = (try await metric("failing"), try await metric("waiting_facts"))
                    return failing == 1 && waiting ?? 0 >= 1
                }
                try await eventually("the log") { server.process.errorsSoFar.contains("The store is in trouble") }
                #expect(try await state() == "live")
                try await limit("unlimited")
                // The late fact, and nothing else.
                try await eventually("the interruption") { try await state() == "interrupted" }
                try await eventually("the log") { server.process.errorsSoFar.contains("The store works again") }
                // The page of metrics is made at most a few times a second.
                try await eventually("nothing to fail or to wait") {
                    let (failing, waiting) = (try await metric("failing"), try await metric("waiting_facts"))
                    return failing == 0 && waiting == 0
                }
                #expect(try await metric("dropped_facts_total") == 0)
            }
        }
    }
}
