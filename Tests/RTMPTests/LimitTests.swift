import Testing

@testable import RTMP

/// The limits that docs/operations/limits.md and the settings promise.
@Suite struct LimitTests {
    @Test func defaults() {
        let limits = Limits()
        #expect(limits.videoMessageBytes == 15_728_640 && limits.audioMessageBytes == 1_048_576 && limits.dataMessageBytes == 65_536)
        #expect(limits.partialMessages == 64 && limits.partialBytes == 17_825_792)
        #expect(limits.messageBytesBeforePublish == 65_536 && limits.bytesBeforePublish == 262_144)
        #expect(limits.chunkStreams == 4_096 && limits.messageStreams == 64)
        #expect(limits.nameBytes == 256 && limits.queryBytes == 4_096)
        #expect(limits.amf.depth == 32 && limits.amf.entriesPerContainer == 1_024)
        #expect(limits.amf.totalValues == 16_384 && limits.amf.stringBytes == 262_144)
    }

    /// Media limits exclude the tag header, which adds 64 bytes; control messages and commands have none.
    @Test func byType() {
        let limits = Limits()
        #expect(limits.messageBytes(.audio) == 1_048_640)
        #expect(limits.messageBytes(.video) == 15_728_704 && limits.messageBytes(.aggregate) == 15_728_704)
        for type in [1, 2, 3, 4, 5, 6, 15, 16, 17, 18, 19, 20, 255] as [UInt8] {
            #expect(limits.messageBytes(MessageType(rawValue: type)) == 65_536)
        }
    }

    /// Both sides announce chunks of 60,000 bytes at connect. ``ServerConnectTests`` checks the window of 2.5 MB.
    @Test func windows() {
        #expect(ServerSession.outgoingChunkSize == 60_000 && ClientSession.outgoingChunkSize == 60_000)
    }
}
