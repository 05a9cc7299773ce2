import Foundation
import Media
import Testing

@testable import Upstream

/// What is offered to a pushing link is what players of the other server get.
@Suite struct PushTests {
    /// A push begins at a keyframe and at 0: audio of before is not part of it.
    static func pushed(_ tags: [Tag]) -> [Tag] {
        guard let first = tags.firstIndex(where: { $0.kind == .video && !$0.isSequenceHeader }) else { return tags }
        let zero = tags[first].timestamp
        return tags.enumerated().filter { $0.offset >= first || $0.element.isSequenceHeader || $0.element.kind == .data }.map {
            index, tag in
            Tag(kind: tag.kind, timestamp: index < first ? 0 : max(tag.timestamp, zero) - zero, payload: tag.payload)
        }
    }

    static func packets(of tags: [Tag]) async throws -> PacketList {
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
                    let played = PacketList(csv: try await player.outcome(within: 20).text)
                    #expect(played.difference(from: expected) == nil)
                }
                #expect(record.words == "connecting running stopped")
                #expect(task.status.droppedVideo == 0 && task.status.droppedAudio == 0)
                #expect(task.status.bytesOut > pushed.reduce(0) { $0 + UInt64($1.payload.count) })
            }
        }
    }
}
