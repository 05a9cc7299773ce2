import EarshotServer
import Foundation
import PostgresTestSupport
import RoomRegistry
import Rooms
import ServerTestSupport
import Streaming
import TestSupport
import Testing

@testable import ServerConfiguration

/// A device that comes back to its push while the rooms' store is away: its viewers stay, and the room shows one push.
@Suite struct DatabaseOutageTests {
    /// The first is ended before its end, however late the test sees that it has begun.
    private static func sources() async throws -> (String, String) {
        (
            try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60),
            try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 2, tone: 880)
        )
    }

    /// Killed, or standing still with its connection open.
    enum Loss: CaseIterable { case killed, ghost }

    /// Pushes the second source while the store is away, and compares what a viewer played.
    private static func comeBack(
        _ loss: Loss, _ url: String, _ first: ClientProcess, whileAway refused: String, lost: () async throws -> Void
    ) async throws {
        let second = try await Self.sources().1
        if loss == .killed {
            first.send(SIGKILL)
            try await lost()
        }
        let another = try await ClientProcess.run(FFmpeg.push(second, to: "\(refused)?key=a"))
        #expect(another.status != 0 && another.errors.contains("registry_unavailable"), "\(another.errors)")
        func push() async throws {
            let pushed = try await ClientProcess.run(FFmpeg.push(second, to: url))
            #expect(pushed.status == 0, "\(pushed.errors)")
        }
        if loss == .ghost { try await first.halted { try await push() } } else { try await push() }
    }

    private static func checkPlayed(_ viewer: ClientProcess) async throws {
        let (first, second) = try await Self.sources()
        let played = PacketList(csv: try await viewer.outcome().text)
        let difference = played.joinDifference(
            first: try await PacketList.of(file: first), second: try await PacketList.of(file: second))
        #expect(difference == nil)
    }

    /// One push, from its first media to the device's stop.
    private static func checkEvents(_ events: JSON) {
        let ends = events["list"].list.filter { $0["kind"].string == "stream.end" }
        #expect(events["list"].list.count { $0["kind"].string == "stream.begin" } == 1)
        #expect(ends.count == 1 && ends.first?["data"]["end"].string == "clientStopped", "\(String(describing: events.value))")
        #expect(events["list"].list.count { $0["kind"].string == "room.interrupted" } == 1)
    }

    @Test(.enabled(if: TestPostgres.isOn, "on PostgreSQL"), .timeLimit(.minutes(5)), arguments: Loss.allCases)
    func theDatabaseIsKilledMeanwhile(_ loss: Loss) async throws {
        let first = try await Self.sources().0
        try await OwnPostgres.run { database in
            try await TestServer.run({
                $0.database.url = database.url
                $0.rooms.policy.cleanStopMs = 500
            }) { server in
                let url = "\(server.rtmp)/live/cam1?key=a"
                try await ClientProcess.during(Probe.packets("\(server.rtmp)/live/cam1")) { viewer in
                    try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                    try await ClientProcess.during(FFmpeg.push(first, to: url)) { device in
                        try await server.wait("rooms/cam1") { $0["state"].string == "live" }
                        try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                        try await database.kill()
                        try await Self.comeBack(loss, url, device, whileAway: "\(server.rtmp)/live/cam2") {
                            try await eventually("the loss") { server.server.parts.pushes.count == 0 }
                        }
                    }
                    try await Self.checkPlayed(viewer)
                }
                try await database.again()
                try await eventually("the store") { await server.server.parts.rooms.storeProblem() == nil }
                // Interrupted; or expired, after an outage of less than five seconds.
                try await server.wait("rooms/cam1") { $0["state"].string != "live" }
                Self.checkEvents(try await server.api("events?roomId=cam1&limit=1000"))
                #expect(server.server.parts.pushes.count == 0)
            }
        }
    }

    /// The disk takes no writes.
    @Test(.enabled(if: !TestPostgres.isOn, "on SQLite"), .timeLimit(.minutes(5)), arguments: Loss.allCases)
    func theDiskIsFullMeanwhile(_ loss: Loss) async throws {
        let first = try await Self.sources().0
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { server in
                func limit(_ bytes: String) async throws {
                    let outcome = try await ClientProcess.run(["prlimit", "--pid", "\(server.process.id)", "--fsize=\(bytes):unlimited"])
                    #expect(outcome.status == 0, "\(outcome.errors)")
                }
                func api(_ path: String) async throws -> JSON {
                    try await HTTPAnswer.get("\(server.http)/api/v1/\(path)", token: server.token).json()["data"]
                }
                let url = "\(server.rtmp)/live/cam1?key=a"
                try await ClientProcess.during(Probe.packets("\(server.rtmp)/live/cam1")) { viewer in
                    try await eventually("the viewer") { try await api("streams")["list"][0]["viewers"].int == 1 }
                    try await ClientProcess.during(FFmpeg.push(first, to: url)) { device in
                        try await eventually("the room") { try await api("rooms/cam1")["state"].string == "live" }
                        try await eventually("keyframes") { try await api("streams")["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                        try await limit("1")
                        try await Self.comeBack(loss, url, device, whileAway: "\(server.rtmp)/live/cam2") {
                            try await eventually("the loss") { try await api("streams")["list"][0]["state"].string == "interrupted" }
                        }
                    }
                    try await Self.checkPlayed(viewer)
                }
                #expect(try await api("rooms/cam1")["state"].string == "live")
                try await limit("unlimited")
                try await eventually("the interruption") { try await api("rooms/cam1")["state"].string != "live" }
                Self.checkEvents(try await api("events?roomId=cam1&limit=1000"))
            }
        }
    }
}
