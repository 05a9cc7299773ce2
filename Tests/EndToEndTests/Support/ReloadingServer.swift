import Foundation
import NIOCore
import RTMP
import ServerTestSupport
import TestSupport

/// A process with a file of settings that a test changes.
struct ReloadingServer: Sendable {
    /// Settings by their paths, as in "limits.connections", with values as YAML has them. ``ReloadCoverageTests`` looks for these paths.
    typealias Settings = KeyValuePairs<String, String>

    let earshot: EarshotProcess
    let file: String

    static func run(
        _ settings: Settings = [:], in directory: URL, _ body: @Sendable (ReloadingServer) async throws -> Void
    ) async throws {
        let file = directory.appendingPathComponent("earshot.yaml").path
        try Self.text(settings).write(toFile: file, atomically: true, encoding: .utf8)
        try await EarshotProcess.serve(data: directory, ["--config", file]) { earshot in
            try await body(ReloadingServer(earshot: earshot, file: file))
        }
    }

    /// Runs a server in a directory of its own.
    static func run(_ settings: Settings = [:], _ body: @Sendable (ReloadingServer) async throws -> Void) async throws {
        try await Fixture.withDirectory { try await Self.run(settings, in: $0, body) }
    }

    private static func text(_ settings: Settings) -> String {
        settings.isEmpty ? "{}" : settings.map { "\($0.key): \($0.value)\n" }.joined()
    }

    var rtmp: String { self.earshot.rtmp }
    var http: String { self.earshot.http }
    var rtmpPort: Int { get throws { try Self.port(self.rtmp) } }
    var httpPort: Int { get throws { try Self.port(self.http) } }
    private static func port(_ url: String) throws -> Int { try Int(url.split(separator: ":").last.orThrow()).orThrow() }

    // MARK: Calls and reloads

    func call(_ method: String, _ path: String, _ body: String? = nil) async throws -> HTTPAnswer {
        try await HTTPAnswer.call(
            method, "\(self.http)/api/v1/\(path)", body: body.map { Data($0.utf8) }, token: self.earshot.token)
    }

    /// `data` of an API answer.
    func api(_ path: String) async throws -> JSON { try await self.call("GET", path).json()["data"] }

    /// Writes the file and reloads; returns the answer.
    func reload(_ text: String) async throws -> HTTPAnswer {
        try text.write(toFile: self.file, atomically: true, encoding: .utf8)
        return try await self.call("POST", "server/reload", "{}")
    }

    /// Reloads with these settings and no others; returns the names of what applies, and of what waits.
    @discardableResult
    func apply(_ settings: Settings) async throws -> (applied: [String], waiting: [String]) {
        try Self.text(settings).write(toFile: self.file, atomically: true, encoding: .utf8)
        // The server waits half a second for a file that has just been written, in case more follows.
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -60)], ofItemAtPath: self.file)
        let answer = try await self.call("POST", "server/reload", "{}")
        guard answer.status == 200 else { throw TimedOut(description: answer.text) }
        let data = try answer.json()["data"]
        return (data["applied"].list.compactMap(\.["setting"].string), data["needRestart"].list.compactMap(\.["setting"].string))
    }

    // MARK: What happens

    func streams() async throws -> JSON { try await self.api("streams")["list"] }

    func waitForPush() async throws {
        try await eventually("the push") { try await self.streams().list.contains { ($0["bytesIn"].int ?? 0) > 0 } }
    }

    /// Waits until the API's answer satisfies the condition.
    func wait(_ path: String, within seconds: Double = 60, until condition: @Sendable (JSON) -> Bool) async throws {
        var last = ""
        do {
            try await eventually("\(path) to change", within: seconds) {
                let answer = try await self.call("GET", path)
                last = answer.text
                return try condition(answer.json()["data"])
            }
        } catch let error as TimedOut {
            throw TimedOut(description: "\(error); the last answer: \(last.prefix(2_000))")
        }
    }

    /// Waits for a line of the log with all these parts.
    func logs(_ parts: String..., within seconds: Double = 60) async throws {
        try await eventually("a line with \(parts)", within: seconds) {
            self.earshot.process.errorsSoFar.split(separator: "\n").contains { line in parts.allSatisfy { line.contains($0) } }
        }
    }

    func makeRoom(_ name: String) async throws {
        let answer = try await self.call("POST", "rooms", "{\"roomId\":\"\(name)\"}")
        guard answer.status == 201 else { throw TimedOut(description: answer.text) }
    }

    /// Publishes a header and a keyframe, and waits until the room has gone live; by then it may be over.
    func livePublisher(_ name: String) async throws -> RawClient {
        let client = try await RawClient.publishing(self.rtmpPort, name)
        client.send(.video, SyntheticTag.videoHeader)
        client.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
        try await self.wait("rooms/\(name.prefix { $0 != "?" })") { $0["liveSince"].string != nil }
        return client
    }

    /// Asks to publish or play; returns the refusal's text, or nil when it may. `name` may have a query.
    func refusal(
        _ action: RefusedAction, _ name: String, app: String = "live", _ options: RawClient.Options = RawClient.Options()
    ) async throws -> String? {
        let client = try await RawClient.connected(self.rtmpPort, app: app, options)
        let streamID = try await client.createStream()
        try await client.run { session in
            switch action {
            case .publish: session.publish(name, on: streamID)
            case .play: session.play(name, on: streamID)
            }
        }
        let began: ClientSessionOutput = action == .publish ? .publishStarted(streamID: streamID) : .playStarted(streamID: streamID)
        try await eventually("an answer for \(name)") { client.outputs.contains(began) || client.isClosed }
        let isAdmitted = client.outputs.contains(began)
        let text = client.statuses.last?.description ?? "closed"
        await client.close()
        return isAdmitted ? nil : text
    }

    enum RefusedAction { case publish, play }
}
