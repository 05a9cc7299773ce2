import Media
import NIOCore
import Testing

@testable import Relay

@Suite struct StreamMeterTests {
    @Test func ratesOverAWindow() throws {
        var meter = StreamMeter()
        for index in 0..<60 {
            let nowMs = 1_000 + Int64(index) * 40
            let frame = try index % 30 == 0 ? Make.key(index, at: nowMs, bytes: 87) : Make.inter(index, at: nowMs, bytes: 87)
            meter.count(frame, nowMs: nowMs)
            meter.count(try Make.audio(index, at: nowMs, bytes: 40), nowMs: nowMs)
            meter.tick(nowMs: min(nowMs, 2_999))
        }
        #expect(meter.messagesIn == 120 && meter.bytesIn == 60 * 150)
        #expect(meter.videoBitsPerSecond == 0, "no full window yet")
        meter.tick(nowMs: 3_400)
        #expect(meter.videoBitsPerSecond == 60 * 100 * 8 * 10 / 24 && meter.audioBitsPerSecond == 60 * 50 * 8 * 10 / 24)
        #expect(meter.framesPerSecond == 25 && meter.audioFramesPerSecond == 25)
        #expect(meter.keyframeIntervalMs == 1_200)
        meter.tick(nowMs: 5_400)
        #expect(meter.videoBitsPerSecond == 0 && meter.audioBitsPerSecond == 0)
        #expect(meter.framesPerSecond == 0 && meter.audioFramesPerSecond == 0)
    }

    @Test func headersAndMetadataAreNoFrames() throws {
        var meter = StreamMeter()
        meter.count(try Make.metadata(1), nowMs: 0)
        meter.count(try Make.videoHeader(2), nowMs: 0)
        meter.count(try Make.script(3, at: 0), nowMs: 0)
        meter.count(try Frame(kind: .audio, timestamp: 0, payload: ByteBuffer(bytes: [0xAF, 0, 0x11, 0x90])), nowMs: 0)
        meter.tick(nowMs: 2_000)
        #expect(meter.framesPerSecond == 0 && meter.audioFramesPerSecond == 0 && meter.messagesIn == 4 && meter.keyframeIntervalMs == nil)
    }

    @Test func formats() throws {
        var meter = StreamMeter()
        #expect(meter.video == nil && meter.audio == nil)
        meter.count(try Make.videoHeader(1), nowMs: 0)
        #expect(meter.video == VideoFormat(codec: .avc), "the header cannot be read, the codec can")
        // AAC-LC, 48 kHz, stereo.
        meter.count(try Frame(kind: .audio, timestamp: 0, payload: ByteBuffer(bytes: [0xAF, 0, 0x11, 0x90])), nowMs: 0)
        #expect(meter.audio?.codec == .aac && meter.audio?.sampleRate == 48_000 && meter.audio?.channels == 2)
        meter.count(try Make.key(2, at: 0), nowMs: 0)
        meter.count(try Make.key(3, at: 500), nowMs: 0)
        #expect(meter.keyframeIntervalMs == 500)
        meter.publisherChanged()
        #expect(meter.video == nil && meter.audio == nil && meter.keyframeIntervalMs == nil && meter.messagesIn == 4)
        // Nellymoser has no sequence header: any message shows the codec.
        meter.count(try Frame(kind: .audio, timestamp: 0, payload: ByteBuffer(bytes: [0x6E, 1, 2])), nowMs: 0)
        #expect(meter.audio?.codec == .nellymoser)
    }
}
