import Foundation
import LinkTransport
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Links
@testable import ServerConfiguration
@testable import Streaming

/// Events of links to other servers, and pulls held back for a while.
@Suite struct LinkEventTests {
    /// The stream's events of links, also those from before it had a room.
    private static func linkEvents(_ server: TestServer, _ name: String) async throws -> [JSON] {
        try await server.api("events?limit=1000")["list"].list.filter {
            $0["kind"].string?.hasPrefix("link.") == true && $0["data"]["name"].string == name
        }
    }

    private static func kinds(_ server: TestServer, _ room: String) async throws -> [String] {
        try await Self.linkEvents(server, room).compactMap { $0["kind"].string.map { String($0.dropFirst(5)) } }
    }

    /// Each change is reported once, in order, without the credential, in both formats.
    @Test func aLinkIsTold() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        let receiver = try await WebhookReceiver.start()
        try await TestServer.run({
            LinkTests.open(&$0)
            $0.webhooks.tencentURLs = [receiver.url]
        }) { origin in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(origin.rtmp)/live/cam1")) { _ in
                try await origin.wait("rooms/cam1") { $0["state"].string == "live" }
                let link = try await TestServer.run(LinkTests.open) { edge in
                    let link = try await LinkTests.create(origin, "push", "cam1", "\(edge.rtmp)/live/copysecret?key=hush-hush")
                    try await origin.wait("links/\(link)") { $0["state"].string == "running" }
                    return link
                }
                // The other server has gone; further failed attempts are no news.
                try await origin.wait("links/\(link)") { ($0["attempts"].int ?? 0) >= 3 }
                #expect(try await Self.kinds(origin, "cam1") == ["started", "connected", "interrupted"])
                #expect(try await origin.call("DELETE", "links/\(link)").status == 200)
                try await eventually("the end") { try await Self.kinds(origin, "cam1").last == "stopped" }
                let events = try await Self.linkEvents(origin, "cam1")
                #expect(events.count == 4)
                for event in events {
                    let data = event["data"]
                    #expect(data["linkId"].int == link && data["direction"].string == "push" && data["name"].string == "cam1")
                    #expect(data["target"].string?.hasPrefix("rtmp://127.0.0.1:") == true)
                }
                #expect(events[0]["data"]["reason"].isNull || events[0]["data"]["reason"].string == nil)
                #expect(events[2]["data"]["reason"].string != nil && events[2]["data"]["error"].string != nil)
                #expect(events[3]["data"]["reason"].string == "deleted")
                try await eventually("four callbacks") { receiver.accepted.count { $0.json["event_type"].int == 314 } == 4 }
            }
            let told = receiver.accepted.map(\.json).filter { $0["event_type"].int == 314 }
            #expect(told.map { $0["callback_event"].string } == ["TaskStart", "TaskConnected", "TaskAlarm", "TaskExit"])
            #expect(told.allSatisfy { $0["stream_id"].string == "cam1" && $0["to_url"].string?.hasPrefix("rtmp://127.0.0.1:") == true })
            let all =
                try await origin.call("GET", "rooms/cam1/events?limit=1000").text
                + receiver.accepted.map { String(decoding: $0.body, as: UTF8.self) }.joined()
            #expect(!all.contains("hush") && !all.contains("copysecret"))
        }
        await receiver.stop()
    }

    /// An always-on pull resumes by itself when its obstacle here is gone.
    @Test func aPullThatIsNotTakenWaits() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        try await TestServer.run(LinkTests.open) { origin in
            try await TestServer.run(LinkTests.open) { edge in
                try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(origin.rtmp)/live/cam1")) { _ in
                    let link = try await LinkTests.create(edge, "pull", "copy", "\(origin.rtmp)/live/cam1")
                    func live() async throws { try await edge.wait("rooms/copy") { $0["state"].string == "live" } }
                    func held(_ word: String) async throws {
                        try await edge.wait("links/\(link)") {
                            $0["state"].string == "held" && $0["lastError"].string?.contains(word) == true
                        }
                    }
                    try await live()
                    // Held until the stream is resumed.
                    #expect(try await edge.call("POST", "streams/live/copy/forbid", "{}").status == 200)
                    try await held("forbidden")
                    // It does not even try: nothing is fetched.
                    try await origin.wait("streams") { $0["list"][0]["viewers"].int == 0 }
                    let attempts = try await edge.api("links/\(link)")["attempts"].int
                    #expect(try await edge.call("POST", "streams/live/copy/resume").status == 200)
                    try await live()
                    #expect(try await edge.api("links/\(link)")["attempts"].int == attempts.map { $0 + 1 })
                    // Held until the ban ends.
                    #expect(try await edge.call("POST", "streams/live/copy/forbid", #"{"seconds":2}"#).status == 200)
                    // The link itself may be seen only after the ban, when it runs again.
                    try await eventually("word that it was held") {
                        try await Self.linkEvents(edge, "copy").count {
                            $0["kind"].string == "link.interrupted" && $0["data"]["reason"].string == "forbidden"
                        } == 2
                    }
                    try await live()
                    // A drop counts as a broken connection.
                    #expect(try await edge.call("POST", "streams/live/copy/drop", "{}").status == 200)
                    try await edge.wait("rooms/copy/events?limit=1000") { events in
                        events["list"].list.contains {
                            $0["kind"].string == "link.interrupted" && $0["data"]["reason"].string == "dropped"
                        }
                    }
                    try await live()
                    try await eventually("the fourth connection") {
                        try await Self.kinds(edge, "copy").count { $0 == "connected" } == 4
                    }
                    let news = try await Self.linkEvents(edge, "copy")
                    let reasons = news.filter { $0["kind"].string == "link.interrupted" }.map { $0["data"]["reason"].string }
                    #expect(reasons == ["forbidden", "forbidden", "dropped"])
                    #expect(news.count { $0["kind"].string == "link.connected" } == 4)
                    #expect(!news.contains { $0["kind"].string == "link.stopped" })
                }
            }
        }
    }
}
