import Foundation
import Media
import NIOCore
import RTMP
import TestSupport
import Testing

@testable import LinkTransport

/// Players of the other server get exactly what a pushing link is offered.
@Suite struct PushTests {
    /// A push starts at a keyframe and at time 0, without earlier audio.
    static func pushed(_ tags: [FLVTag]) -> [FLVTag] {
        guard let first = tags.firstIndex(where: { $0.kind == .video && !$0.isSequenceHeader }) else { return tags }
        let zero = tags[first].timestamp
        return tags.enumerated().filter { $0.offset >= first || $0.element.isSequenceHeader || $0.element.kind == .data }.map {
            index, tag in
            FLVTag(kind: tag.kind, timestamp: index < first ? 0 : max(tag.timestamp, zero) - zero, payload: tag.payload)
        }
    }

    static func packets(of tags: [FLVTag]) async throws -> PacketList {
        try await Fixture.withDirectory { directory in
            let path = directory.appendingPathComponent("pushed.flv").path
            try FLVFile.write(tags, to: path)
            return try await PacketList.of(file: path)
        }
    }

    @Test(arguments: PullTests.recordings) func samePackets(_ recording: PullTests.Recording) async throws {
        let source = try await Fixture.flv(video: recording.video, audio: recording.audio, seconds: 3)
        let tags = try FLVFile.read(source)
        let pushed = Self.pushed(tags)
        let expected = try await Self.packets(of: pushed)
        try await Nginx.run { nginx in
            let url = "\(nginx.url)/ends/cam1"
            try await pushing(url) { task, record in
                try await eventually("consent") { task.state == .running }
                try await ClientProcess.during(Probe.packets(url)) { player in
                    try await nginx.players(1)
                    try await offer(tags, to: task)
                    try await eventually("the last frame sent") { task.status.framesOut == UInt64(pushed.count) }
                    task.stop()
                    let played = PacketList(csv: try await player.outcome(within: 60).text)
                    #expect(played.difference(from: expected) == nil)
                }
                #expect(record.words == "connecting running stopped")
                #expect(task.status.droppedVideo == 0 && task.status.droppedAudio == 0)
                #expect(task.status.bytesOut > pushed.reduce(0) { $0 + UInt64($1.payload.count) })
            }
        }
    }

    /// The other server is killed and comes back while the stream continues.
    @Test func comesBackWhenTheServerDoes() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        let tags = try FLVFile.read(source)
        let port = try await FreePort.reserve()
        let url = "rtmp://127.0.0.1:\(port)/live/cam1"
        // Gives a player time to join before the push comes back.
        var options = LinkOptions.forTests
        (options.reconnect.firstMs, options.reconnect.maxMs) = (1_500, 1_500)
        try await pushing(url, options) { task, record in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await offer(tags, to: task) }
                for round in 1...2 {
                    try await Nginx.run(port: port) { _ in
                        try await pulling(url) { pull, pulled in
                            try await eventually("the answer to play") { pull.status.bytesIn > 300 }
                            let isFirst = task.state != .running
                            // A slow machine loses video up to the next keyframe, but no sound.
                            try await eventually("frames") { pulled.frames.count > 30 && pulled.frames.contains { $0.kind == .video } }
                            let video = pulled.frames.filter { $0.kind == .video }
                            #expect(video.first?.isSequenceHeader == true)
                            let coded = video.first { $0.tag.flags.contains(.coded) }
                            // A player that joins before the push comes back gets its beginning.
                            if isFirst { #expect(coded?.isKeyframe == true, "round \(round)") }
                            let times = pulled.frames.map(\.timestamp)
                            #expect((times.first ?? .max) < 60_000)
                        }
                    }
                    try await eventually("the loss of connection \(round)") { task.status.lastError != nil && task.state != .running }
                }
                group.cancelAll()
            }
            #expect(task.status.connections == 2)
            #expect(record.words.contains("running waiting"))
        }
    }

    private static func numbered(_ kind: Frame.Kind, _ number: Int, key: Bool = false, bytes: Int, timestamp: Int64) throws -> Frame {
        var payload = ByteBuffer(bytes: kind == .video ? [key ? 0x17 : 0x27, 1, 0, 0, 0] : [0xAF, 1])
        payload.writeInteger(UInt32(number))
        payload.writeRepeatingByte(0, count: bytes)
        return try Frame(kind: kind, timestamp: timestamp, payload: payload)
    }

    private static func number(_ message: Message) -> UInt32? {
        message.payload.getInteger(at: message.payload.readerIndex + (message.type == .video ? 5 : 2))
    }

    /// A receiver that reads a quarter of what is offered. Memory is bounded, all audio arrives, and every gap in the video ends at a
    /// keyframe.
    @Test func slowReceiver() async throws {
        var script = ScriptedRTMP.Script()
        script.readEveryMs = 100
        script.readBytes = 32 << 10
        try await ScriptedRTMP.run(script) { server in
            var options = LinkOptions.forTests
            options.queueMs = 400
            options.queueBytes = 1 << 20
            try await pushing(server.url, options) { task, _ in
                try await eventually("consent") { task.state == .running }
                let begin = ContinuousClock.now
                for index in 0..<200 {
                    let time = Int64(index * 20)
                    if index % 2 == 0 {
                        let key = index % 20 == 0
                        task.offer(try Self.numbered(.video, index, key: key, bytes: key ? 100_000 : 40_000, timestamp: time))
                    }
                    task.offer(try Self.numbered(.audio, index, bytes: 100, timestamp: time))
                    #expect(task.status.queuedBytes <= 1 << 20 + 200_000)
                    try await Task.sleep(until: begin + .milliseconds(time))
                }
                try await eventually("the rest") { server.media.count { $0.type == .audio } == 200 }
                let status = task.status
                #expect(status.droppedVideo > 20)
                #expect(status.droppedAudio == 0)
                #expect(status.connections == 1)
                let audio = server.media.filter { $0.type == .audio }.compactMap(Self.number)
                #expect(audio == (0..<200).map { UInt32($0) })
                let video = server.media.filter { $0.type == .video }
                #expect(video.count + Int(status.droppedVideo) == 100)
                for (before, after) in zip(video, video.dropFirst()) {
                    let (one, two) = (try Self.number(before).orThrow(), try Self.number(after).orThrow())
                    #expect(two == one + 2 || after.payload.readableBytesView.first == 0x17, "\(one) then \(two)")
                }
            }
        }
    }

    private static func maybeSecure(
        _ secure: Bool, _ server: ScriptedRTMP, _ body: (String, LinkOptions) async throws -> Void
    ) async throws {
        guard secure else { return try await body(server.url, .forTests) }
        try await Fixture.withDirectory { directory in
            let certificates = try await Certificates.make(in: directory)
            let pair = try await certificates.pair("server", names: "IP:127.0.0.1")
            try await TLSFront.run(to: server.port, pair) { front in
                var options = LinkOptions.forTests
                options.caFile = certificates.authority
                try await body("rtmps://127.0.0.1:\(front.port)/live/cam1", options)
            }
        }
    }

    /// Offers more than the system buffers for a receiver that reads nothing.
    private static func offerTooMuch(to task: LinkClient) throws {
        for index in 0..<24 {
            task.offer(try Self.numbered(.video, index, key: true, bytes: 1 << 20, timestamp: Int64(index)))
        }
    }

    /// A receiver that stops reading: the link reports it and is tried again. It can also be stopped long before that.
    @Test(arguments: [false, true]) func receiverThatStopsReading(_ secure: Bool) async throws {
        var script = ScriptedRTMP.Script()
        script.stopsReadingAfter = "publish"
        try await ScriptedRTMP.run(script) { server in
            try await Self.maybeSecure(secure, server) { url, options in
                var options = options
                options.sendStallMs = 1_500
                options.queueBytes = 32 << 20
                try await pushing(url, options) { task, _ in
                    try await eventually("consent") { task.state == .running }
                    try Self.offerTooMuch(to: task)
                    try await eventually("the end") { task.status.lastError != nil }
                    #expect(task.status.lastError == .stalled(ms: 1_500))
                    try await eventually("another try") { task.status.connections == 2 }
                }
                options.sendStallMs = 600_000
                try await pushing(url, options) { task, record in
                    try await eventually("consent") { task.state == .running }
                    try Self.offerTooMuch(to: task)
                    try await eventually("something sent") { task.status.queuedMs > 300 }
                    task.stop()
                    try await eventually("the end") { task.state == .stopped }
                    #expect(record.words == "connecting running stopped")
                }
            }
        }
    }

    /// Everything sent beside media. Headers go first, metadata behind `@setDataFrame`, the caller's properties in connect, a goodbye at
    /// the end.
    @Test func whatTheServerIsTold() async throws {
        let properties = SharedList<String>()
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            if let text = command.object["earshotVia"]?.string { properties.append(text) }
            return nil
        }
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 1)
        let tags = try FLVFile.read(source)
        try await ScriptedRTMP.run(script) { server in
            var options = LinkOptions.forTests
            options.connectProperties = { [("earshotVia", "a,b")] }
            try await pushing(server.url + "?key=hush", options) { task, _ in
                try await eventually("consent") { task.state == .running }
                for tag in tags { task.offer(try tag.frame()) }
                try await eventually("all") { server.media.count == Self.pushed(tags).count }
            }
            try await eventually("the goodbye") { server.commands.all.last == "deleteStream" }
            #expect(properties.all == ["a,b"])
            #expect(
                server.commands.all == ["connect", "createStream", "releaseStream", "FCPublish", "publish", "FCUnpublish", "deleteStream"])
            let metadata = try server.media.first.orThrow()
            #expect(metadata.type == .dataAMF0)
            var decoder = AMF0Decoder(metadata.payload)
            #expect(try decoder.next() == "@setDataFrame")
            #expect(try decoder.next() == "onMetaData")
            #expect(server.media.dropFirst().map { Array($0.payload.readableBytesView) } == Self.pushed(tags).dropFirst().map(\.payload))
            #expect(server.media.map(\.timestamp) == Self.pushed(tags).map(\.timestamp))
        }
    }

    /// Repeated starts and stops leave no thread and no connection behind. The last call decides the state.
    @Test func startsAndStopsAtWill() async throws {
        try await ScriptedRTMP.run { server in
            let name = "churn\(server.port)"
            let record = PullRecord()
            let task = LinkClient.push(
                try LinkURL(parsing: server.url), options: .forTests, name: name, onState: { record.note($0) })
            for round in 0..<200 {
                task.start()
                if round % 3 == 0 { try await Task.sleep(for: .milliseconds(round % 7)) }
                task.stop()
                if round % 5 == 0 { task.start() }
            }
            task.start()
            try await eventually("running") { task.state == .running }
            task.stop()
            try await eventually("stopped") { task.state == .stopped }
            try await eventually("no thread") { try Self.threads().allSatisfy { $0 != name } }
            // Every run of the thread reports its end before the next one starts.
            let words = record.states.map(\.word)
            for (before, after) in zip(words, words.dropFirst()) {
                #expect(before == "stopped" ? after == "connecting" : after != "connecting")
            }
            #expect(words.last == "stopped")
        }
    }

    private static func threads() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").compactMap {
            // A thread may end between listing and reading.
            try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
        }
    }

    /// No key appears in the state, in errors, or in librtmp's log.
    @Test func keysAreNotShown() async throws {
        let lines = SharedList<String>()
        LibRTMPLog.setHandler { lines.append($0) }
        defer { LibRTMPLog.setHandler(nil) }
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            guard command.name == "publish" || command.name == "play" else { return nil }
            return [ScriptedRTMP.status(StatusCode.publishBadName, level: .error, "bad \(command.string(at: 0) ?? "")")]
        }
        try await ScriptedRTMP.run(script) { server in
            for pushes in [true, false] {
                var options = LinkOptions.forTests
                options.reconnect.maxAttempts = 2
                let url = "rtmp://127.0.0.1:\(server.port)/live/topsecret?key=hushhush"
                let error = try await RefusalTests.failure(url, pushes: pushes, options)
                #expect(error.description.contains("***"), "\(error)")
                #expect(!"\(error)".contains("secret") && !"\(error)".contains("hush"))
                #expect(!(try LinkURL(parsing: url).redacted.contains("secret")))
            }
            server.closeAll()
        }
        #expect(lines.all.allSatisfy { !$0.contains("secret") && !$0.contains("hush") }, "\(lines.all)")
    }
}
