import Foundation
import NIOCore
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import SignalCheck
import Support
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer

/// Admission to a talk channel, and the handling of members who misbehave.
@Suite struct TalkAdmissionTests {
    /// A device pushes its camera, speaks and listens on one connection, as behind NAT.
    @Test(.timeLimit(.minutes(5))) func oneConnectionForCameraAndTalk() async throws {
        try await TestServer.run(TalkRoom<TestServer>.patient) { server in
            let device = try await RawClient.publishing(server.addresses.rtmp.port, "r1")
            device.send(.video, SyntheticTag.videoHeader)
            device.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            try await server.wait("rooms/r1") { $0["state"].string == "live" }
            let room = TalkRoom(server: server, camera: device)
            let (down, up) = (try await device.createStream(), try await device.createStream())
            try await device.play("talk/r1/mix-device", on: down)
            try await device.publish("talk/r1/device", on: up)
            let ann = try await room.talker("ann")
            let ear = try await room.listener("mix-ann")
            try await Microphone(ann).speaking(Tone.sine(500)) {
                try await Microphone(device, on: up).speaking(Tone.sine(1_200)) {
                    try await eventually("a second and a half of the other, for both") {
                        try Heard(device, on: down).voiced(500).count { $0 } >= 15 && Heard(ear).voiced(1_200).count { $0 } >= 15
                    }
                }
            }
            #expect(try Heard(device, on: down).levels(of: 1_200).allSatisfy { $0 < -55 })
            #expect(try Heard(ear).levels(of: 500).allSatisfy { $0 < -55 })
            #expect(try await room.member("device")["role"].string == "host")
            // An error in talk does not cost the camera its connection.
            #expect(try await room.post("members/device/kick", "{}").status == 200)
            try await eventually("the device's voice to be gone") { try await room.member("device").names.isEmpty }
            device.send(.video, SyntheticTag.video(2, isKeyframe: true, bytes: 2_000))
            try await server.wait("streams/live/r1") { $0["stream"]["bytesIn"].int ?? 0 > 4_000 }
            #expect(!device.isClosed)
            try await eventually("a self-check that is right") { try await server.api("selfcheck")["ok"].bool == true }
            for client in [ann, ear, device] { await client.close() }
        }
    }

    /// Talk goes on while the camera is away, and may begin before it. A forbidden room rejects talk.
    @Test(.timeLimit(.minutes(5))) func talkInEveryState() async throws {
        try await TalkRoom.run({ $0.talk.always = true }) { room in
            #expect(try await room.server.call("POST", "rooms", #"{"roomId":"early"}"#).status == 201)
            let early = try await room.client()
            try await early.publish("early/ann", on: early.createStream())
            let ann = try await room.talker("ann")
            // Resets the connection, as a network failure does.
            try await room.camera.reset()
            try await room.server.wait("rooms/r1") { $0["state"].string == "interrupted" }
            let ear = try await Microphone(ann).speaking(Tone.sine(500)) {
                let ear = try await room.listener("mix")
                try await eventually("ann's voice") { try Heard(ear).voiced(500).contains(true) }
                return ear
            }
            #expect(try await room.server.call("POST", "rooms/r1/forbid", "{}").status == 200)
            for client in [ann, ear] {
                try await client.waitUntilClosed()
                #expect(client.statuses.last?.description.contains("[forbidden]") == true, "\(client.statuses)")
            }
            let again = try await room.client()
            try await again.createStreamAndTryToPublish("r1/ann")
            try await again.waitUntilClosed()
            #expect(again.statuses.last?.description.contains("[forbidden]") == true, "\(again.statuses)")
            #expect(!early.isClosed)
            await early.close()
        }
    }

    /// A hostile talker sends pictures, garbage, false headers, bursts and backward clocks. The others are heard throughout.
    @Test(.timeLimit(.minutes(5))) func badInput() async throws {
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix")
            let good = try await room.talker("good")
            try await Microphone(good).speaking(Tone.sine(500)) {
                let bad = try await room.talker("bad")
                for number in 0..<50 {
                    bad.send(.video, SyntheticTag.video(number, isKeyframe: true, bytes: 3_000), timestamp: UInt32(number * 20))
                }
                for number in 0..<50 { bad.send(.audio, SyntheticTag.audio(number, bytes: 200), timestamp: UInt32(number * 20)) }
                bad.send(.audio, [0xAF, 0, 0xFF, 0xFF, 0xFF, 0xFF])
                bad.send(.audio, [0xAF, 0, 0x11, 0x88])
                var number = 0
                func rubbish(_ count: Int) {
                    for _ in 0..<count {
                        let timestamp = [UInt32(number) &* 99_999_999, 0, .max - UInt32(number), UInt32(number * 21)][number % 4]
                        bad.send(.audio, SyntheticTag.audio(number, bytes: 180), timestamp: timestamp)
                        number += 1
                    }
                }
                rubbish(400)
                for number in 0..<20 { bad.send(.dataAMF0, [2, 0, 1, 0x61], timestamp: UInt32(number)) }
                // Most of a burst is skipped undecoded, and counted as such.
                try await eventually("pictures, data and all of the rubbish to be counted") {
                    let member = try await room.member("bad")
                    let counted = (member["damagedFrames"].int ?? 0) + (member["droppedFrames"].int ?? 0)
                    return member["otherFrames"].int ?? 0 >= 70 && member["damagedFrames"].int ?? 0 >= 20 && counted > 300
                }
                // More garbage, as fast as it may be decoded. The other voice is heard beside it.
                let count = try Heard(ear).voiced(500).count
                try await eventually("more than a hundred damaged frames, and the good voice beside them") {
                    rubbish(3)
                    return try await room.member("bad")["damagedFrames"].int ?? 0 > 100
                        && Heard(ear).voiced(500).dropFirst(count).count { $0 } > 25
                }
                await bad.close()
            }
            try room.expectEven(ear)
            for client in [good, ear] { await client.close() }
        }
    }

    /// A listener that stops reading misses that time. It hears live sound when it reads again.
    @Test(.timeLimit(.minutes(5))) func aListenerThatStopsReading() async throws {
        try await TalkRoom.run({ $0.talk.maxQueueMs = 2_000 }) { room in
            var slow = RawClient.Options()
            slow.receiveBuffer = 2_048
            slow.readBytes = 512
            let stalled = try await room.listener("mix", slow)
            let ear = try await room.listener("mix")
            let ann = try await room.talker("ann")
            // Noise needs the full bit rate. Silence would fit into the kernel's buffers for minutes.
            try await Microphone(ann).speaking({ Float(truncatingIfNeeded: $0 &* 2_654_435_761) }) {
                try await eventually("sound") { try Heard(stalled).samples.count > 24_000 }
                try await stalled.stopReading()
                let before = ear.media().count
                try await eventually("eight seconds for who goes on reading") { ear.media().count > before + 375 }
                try await stalled.startReading()
                try await eventually("what is said now, and what was missed") { try Heard(stalled).steps.contains { $0 > 2_000 } }
            }
            try room.expectEven(ear)
            #expect(!stalled.isClosed)
            for client in [ann, ear, stalled] { await client.close() }
        }
    }

    /// The event feed reports live levels, which are not stored.
    @Test(.timeLimit(.minutes(5))) func levelsOnTheFeed() async throws {
        try await TalkRoom.run { room in
            let feed = try await WebSocketClient.open(room.server.addresses.http.port, "/events", token: room.server.token)
            let ann = try await room.talker("ann")
            try await Microphone(ann).speaking(Tone.sine(500)) {
                try await eventually("who speaks, and how loud") {
                    try feed.messages.contains { message in
                        let ann = message["members"].list.first { $0["userId"].string == "ann" }
                        return message["type"].string == "talk.members" && message["roomId"].string == "r1"
                            && ann?["speaking"].bool == true && (-17 ... -13).contains(ann?["levelDb"].int ?? 0)
                    }
                }
            }
            await ann.close()
            await feed.close()
        }
    }
}

extension Float {
    /// Noise from an index: −0.5…0.5.
    fileprivate init(truncatingIfNeeded hash: Int) {
        var bits = UInt64(bitPattern: Int64(hash))
        bits ^= bits >> 29
        bits = bits &* 0xBF58_476D_1CE4_E5B9
        self = Float(bits >> 40) / Float(1 << 24) - 0.5
    }
}
