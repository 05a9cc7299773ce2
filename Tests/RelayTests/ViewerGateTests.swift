import Testing

@testable import Relay

@Suite struct ViewerGateTests {
    static let key: EncodedMessage.Flags = [.video, .keyframe]

    @Test func open() {
        var gate = ViewerGate()
        #expect(gate.isOpen)
        for flags: EncodedMessage.Flags in [.audio, .video, .data, Self.key, [.video, .essential]] {
            #expect(gate.passes(flags, sequence: 0) == true)
        }
        #expect(gate.isOpen && gate.skippedFrames == 0)
    }

    @Test func waitsForKeyframe() {
        var gate = ViewerGate(waitsForKeyframe: true)
        #expect(!gate.isOpen)
        #expect(gate.passes(.video, sequence: 0) == false)
        #expect(gate.passes(.audio, sequence: 1) == true)
        #expect(gate.passes(.data, sequence: 2) == true)
        #expect(gate.passes([.video, .essential], sequence: 3) == true)
        #expect(gate.waitsForKeyframe, "a sequence header is nothing to start from")
        #expect(gate.passes(Self.key, sequence: 4) == true)
        #expect(gate.passes(.video, sequence: 5) == true)
        #expect(gate.isOpen && gate.skippedFrames == 1)
    }

    @Test func olderKeyframesDoNotEndTheWait() {
        var gate = ViewerGate()
        gate.skipVideo(untilKeyframeFrom: 10)
        gate.skipVideo(untilKeyframeFrom: 5)
        #expect(gate.passes(Self.key, sequence: 9) == false)
        #expect(gate.passes(Self.key, sequence: 10) == true)
        #expect(gate.isOpen && gate.skippedFrames == 1)
    }

    @Test func audioOff() {
        var gate = ViewerGate()
        gate.setAudio(false)
        #expect(!gate.isOpen && !gate.wantsAudio)
        #expect(gate.passes(.audio, sequence: 0) == false)
        #expect(gate.passes([.audio, .essential], sequence: 0) == true, "its header is for when it is switched on again")
        #expect(gate.passes(.video, sequence: 0) == true)
        gate.setAudio(true)
        #expect(gate.isOpen && gate.skippedFrames == 0)
    }

    @Test func videoOffAndOn() {
        var gate = ViewerGate()
        gate.setVideo(true)
        #expect(gate.isOpen, "on already")
        gate.setVideo(false)
        #expect(gate.passes(Self.key, sequence: 0) == false)
        #expect(gate.passes([.video, .essential], sequence: 0) == true)
        #expect(gate.passes(.audio, sequence: 0) == true)
        gate.setVideo(true)
        #expect(gate.waitsForKeyframe && gate.skippedFrames == 0)
        #expect(gate.passes(.video, sequence: 1) == false)
        #expect(gate.passes(Self.key, sequence: 2) == true)
        #expect(gate.isOpen && gate.skippedFrames == 1)
    }
}
