import Foundation
import Media
import NIOCore
import TestSupport
import Testing

@testable import LinkTransport

/// A pulling link gets from nginx exactly the packets that ffmpeg pushes into it.
@Suite struct PullTests {
    struct Recording: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let video: [String]?
        let audio: [String]?

        init(_ name: String, video: [String]? = nil, audio: [String]? = nil) {
            self.testDescription = name
            self.video = video
            self.audio = audio
        }
    }

    static let recordings = [
        Recording("H.264 baseline, AAC", video: Fixture.baseline, audio: Fixture.aac),
        Recording("H.264 with B-frames, AAC", video: Fixture.withBFrames, audio: Fixture.aac),
        Recording("AAC only", audio: Fixture.aac),
        Recording("video only", video: Fixture.withBFrames),
    ]

    /// Read as a file, the link's tags have the pushed file's packets and times.
    @Test(arguments: recordings) func samePackets(_ recording: Recording) async throws {
        let source = try await Fixture.flv(video: recording.video, audio: recording.audio, seconds: 3)
        let expected = try await PacketList.of(file: source)
        try await Nginx.run { nginx in
            let url = "\(nginx.url)/live/cam1"
            try await pulling(url) { task, record in
                // nginx agrees to play a name that nobody publishes yet.
                try await eventually("the answer to play") { task.status.bytesIn > 300 }
                #expect(task.status.remoteAddress == "127.0.0.1:\(nginx.port)")
                #expect(task.status.tls == nil)
                let pushed = try await ClientProcess.run(FFmpeg.push(source, to: url))
                #expect(pushed.status == 0, "\(pushed.errors)")
                try await eventually("the last frame") { record.codedCount >= expected.count }
                let got = try await Self.packets(record)
                #expect(got.difference(from: expected) == nil)
                #expect(record.words.hasPrefix("connecting running"))
                // An end of sequence may still be on its way.
                try await eventually("as many in the status") { task.status.framesIn == UInt64(record.frames.count) }
                let status = task.status
                #expect(status.malformed == 0)
                #expect(status.connections == 1)
                #expect(status.bytesIn > record.frames.reduce(0) { $0 + UInt64($1.payload.readableBytes) })
                // Metadata arrived too.
                #expect(record.frames.contains { $0.kind == .data && $0.tag.flags.contains(.metadata) })
            }
        }
    }

    static func packets(_ record: PullRecord) async throws -> PacketList {
        try await Fixture.withDirectory { directory in
            let path = directory.appendingPathComponent("pulled.flv").path
            try FLVFile.write(record.tags, to: path)
            return try await PacketList.of(file: path)
        }
    }

    @Test func stateIsStoppedOnceTheThreadIsGone() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        try await Nginx.run { nginx in
            let url = "\(nginx.url)/live/cam1"
            // Only the call ends it.
            var options = LinkOptions.forTests
            options.silenceMs = 600_000
            let used = options
            try await ClientProcess.during(FFmpeg.push(source, to: url)) { _ in
                try await pulling(url, used) { task, record in
                    try await eventually("frames") { record.frames.count > 10 }
                    task.stop()
                    try await eventually("the end") { task.state == .stopped }
                    #expect(record.ends == [.cancelled])
                    let count = record.frames.count
                    // And again from the start.
                    task.start()
                    try await eventually("more frames") { record.frames.count > count + 10 }
                    #expect(record.starts == 2)
                }
            }
        }
    }

    @Test func comesBackWhenTheServerDoes() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        let port = try await FreePort.reserve()
        let url = "rtmp://127.0.0.1:\(port)/live/cam1"
        try await pulling(url) { task, record in
            try await eventually("refusal") { record.words.contains("waiting") }
            guard case .connect(_, let why)? = task.status.lastError else {
                Issue.record("\(String(describing: task.status.lastError))")
                return
            }
            #expect(why == "Connection refused")
            try await Nginx.run(port: port) { nginx in
                try await ClientProcess.during(FFmpeg.push(source, to: url)) { _ in
                    try await eventually("frames") { record.frames.count > 20 }
                    // Killed before the publisher goes: otherwise nginx may still report the stream's end.
                    nginx.process.send(SIGKILL)
                    try await eventually("the end of the first connection") { record.ends.count == 1 }
                }
            }
            guard case .closed = record.ends.first else {
                Issue.record("\(record.ends)")
                return
            }
            let count = record.frames.count
            try await Nginx.run(port: port) { _ in
                try await ClientProcess.during(FFmpeg.push(source, to: url)) { _ in
                    // Sound may arrive first, and for a while.
                    try await eventually("frames again") {
                        let frames = record.frames[count...]
                        return frames.count > 20 && frames.contains { $0.kind == .video && $0.tag.flags.contains(.coded) }
                    }
                }
            }
            #expect(record.starts == 2)
            #expect(task.status.connections == 2)
            // The new connection starts with headers of its own.
            let again = record.frames[count...].prefix { $0.kind != .video || !$0.tag.flags.contains(.coded) }
            #expect(again.contains { $0.kind == .video && $0.isSequenceHeader }, "\(record.frames[count...].prefix(30).map(\.tag.flags))")
        }
    }

    @Test func publishersEndIsNamed() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 6)
        try await Nginx.run { nginx in
            let url = "\(nginx.url)/ends/cam1"
            // idle_streams off: nothing to play before somebody publishes.
            try await ClientProcess.during(FFmpeg.push(source, to: url)) { _ in
                try await pulling(url) { _, record in
                    try await eventually("the end") { !record.ends.isEmpty }
                    switch record.ends[0] {
                    case .ended, .closed: break
                    default: Issue.record("\(record.ends)")
                    }
                }
            }
        }
    }
}
