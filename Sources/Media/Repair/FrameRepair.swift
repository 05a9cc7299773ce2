internal import NIOCore

/// Looks at each frame of a publisher as it arrives, and sets right what is certain: start codes, ADTS headers, stray bytes, missing sequence headers,
/// wrong keyframe flags. What is not certain stays as it came, flagged as ``TagInfo/Flags/unusable`` for containers.
///
/// A plain value without a clock, owned by the stream's home loop. Where nothing is wrong it reads a few bytes of a frame and changes none. It knows
/// H.264, HEVC and AAC; other codecs, and messages with several tracks, pass unseen.
package struct FrameRepair: Sendable {
    /// What becomes of a frame.
    package enum Outcome: Sendable {
        case relay
        /// It is a sequence header without content, which would replace the true one.
        case drop
        /// A sequence header goes out before it.
        case precede(Frame)
    }

    /// Where a sequence header came from.
    private enum Header: Sendable {
        case none, sent
        /// Made from what the frames hold; its body.
        case made(ByteBuffer)

        var isThere: Bool { if case .none = self { false } else { true } }
    }

    private var videoHeader = Header.none
    private var audioHeader = Header.none
    /// Whether players may be able to decode the kind: a sequence header has come, readable or not, or the codec needs none.
    private var videoMayPlay = false
    private var audioMayPlay = false
    /// Bytes of the length before each NAL unit.
    private var lengthSize = 4
    /// The last certain frame had start codes.
    private var hasStartCodes = false
    /// The newest keyframe cannot be used, so those that depend on it cannot either.
    private var lacksKeyframe = false
    private var videoFlaws = FrameFlaws()
    private var audioFlaws = FrameFlaws()

    package init() {}

    /// Call with each frame of the publisher, in order, before anything else looks at it.
    package mutating func examine(_ frame: inout Frame) -> Outcome {
        // Further tracks are relayed as they come.
        guard frame.tag.flags.isDisjoint(with: [.multitrack, .command]) else { return .relay }
        switch frame.tag.codec {
        case .video(.avc)?: return self.examineVideo(&frame, isHEVC: false)
        case .video(.hevc)?: return self.examineVideo(&frame, isHEVC: true)
        case .audio(.aac)?: return self.examineAudio(&frame)
        // FFmpeg sends a header without content before AV1's own.
        case .video(.av1)? where frame.isSequenceHeader && frame.bodyBytes == 0: return .drop
        case .video?: self.videoMayPlay = true
        case .audio?: self.audioMayPlay = true
        case nil: break
        }
        return .relay
    }

    /// The counts since the last call.
    package mutating func popFlaws() -> (video: FrameFlaws, audio: FrameFlaws) {
        defer {
            self.videoFlaws = FrameFlaws()
            self.audioFlaws = FrameFlaws()
        }
        return (self.videoFlaws, self.audioFlaws)
    }

    // MARK: Pictures

    private mutating func examineVideo(_ frame: inout Frame, isHEVC: Bool) -> Outcome {
        if frame.tag.flags.contains(.coded) { return self.examinePicture(&frame, isHEVC: isHEVC) }
        guard frame.tag.flags.contains(.sequenceHeader) else { return .relay }
        guard frame.bodyBytes > 0 else { return .drop }
        self.videoMayPlay = true
        if let units = StartCodes.units(frame.payload, from: frame.bodyIndex), let record = Self.record(of: units, isHEVC: isHEVC) {
            frame.replaceBody(with: record)
            self.videoFlaws.headersMade &+= 1
        }
        if let size = Self.lengthSize(frame, isHEVC: isHEVC) {
            self.lengthSize = size
            self.videoHeader = .sent
        }
        return .relay
    }

    private mutating func examinePicture(_ frame: inout Frame, isHEVC: Bool) -> Outcome {
        var walk = NALWalk(frame.payload, from: frame.bodyIndex, lengthSize: self.lengthSize, isHEVC: isHEVC)
        if !walk.isEven || self.hasStartCodes {
            guard self.reframe(&frame, &walk, isHEVC: isHEVC) else {
                if frame.isKeyframe { self.lacksKeyframe = true }
                self.videoFlaws.broken &+= 1
                frame.tag.flags.insert(.unusable)
                return .relay
            }
        }
        self.setKeyframeFlag(of: &frame, walk, isHEVC: isHEVC)
        if frame.isKeyframe { self.lacksKeyframe = false }
        if self.lacksKeyframe {
            self.videoFlaws.broken &+= 1
            frame.tag.flags.insert(.unusable)
        }
        var outcome = Outcome.relay
        if walk.hasParameterSets, let header = self.header(in: frame, isHEVC: isHEVC) { outcome = .precede(header) }
        if !self.videoHeader.isThere {
            self.videoFlaws.headless &+= 1
            frame.tag.flags.insert(.unusable)
            if self.audioMayPlay, !self.videoMayPlay { frame.tag.flags.insert(.headless) }
        }
        return outcome
    }

    /// Brings the NAL units of a frame whose lengths do not add up into FLV's form. False: it cannot be done with certainty.
    private mutating func reframe(_ frame: inout Frame, _ walk: inout NALWalk, isHEVC: Bool) -> Bool {
        let start = frame.bodyIndex
        let code = StartCodes.length(frame.payload, at: start)
        // A length of 1 looks like a start code of four bytes, and one of 256 to 511 like one of three: lengths that add up are lengths. Only behind
        // frames with start codes are three bytes a start code all the same.
        if walk.isEven, !(self.hasStartCodes && code == 3) {
            self.hasStartCodes = false
            return true
        }
        // Too few bytes for a length hold no NAL unit.
        if walk.strayBytes > 0, walk.isPlausible, walk.slice != nil {
            frame.payload.moveWriterIndex(to: frame.payload.writerIndex &- walk.strayBytes)
            self.videoFlaws.trimmed &+= 1
            self.hasStartCodes = false
            return true
        }
        guard code != nil,
            self.hasStartCodes || !NALWalk.looksLikeUnit(frame.payload, from: start, lengthSize: self.lengthSize, isHEVC: isHEVC),
            let units = StartCodes.units(frame.payload, from: start), let body = self.joined(units)
        else { return false }
        frame.replaceBody(with: body)
        self.videoFlaws.reframed &+= 1
        self.hasStartCodes = true
        walk = NALWalk(frame.payload, from: frame.bodyIndex, lengthSize: self.lengthSize, isHEVC: isHEVC)
        return true
    }

    /// Nil where a unit is too long for the lengths that the sequence header announces.
    private func joined(_ units: [ByteBuffer]) -> ByteBuffer? {
        var body = ByteBuffer()
        body.reserveCapacity(units.reduce(0) { $0 &+ $1.readableBytes &+ self.lengthSize })
        for unit in units {
            switch self.lengthSize {
            case 1:
                guard let length = UInt8(exactly: unit.readableBytes) else { return nil }
                body.writeInteger(length)
            case 2:
                guard let length = UInt16(exactly: unit.readableBytes) else { return nil }
                body.writeInteger(length)
            default:
                guard let length = UInt32(exactly: unit.readableBytes) else { return nil }
                body.writeInteger(length)
            }
            body.writeImmutableBuffer(unit)
        }
        return body
    }

    private mutating func setKeyframeFlag(of frame: inout Frame, _ walk: NALWalk, isHEVC: Bool) {
        guard walk.isPlausible, let slice = walk.slice else { return }
        let isFlagged = frame.tag.flags.contains(.keyframe)
        guard isFlagged != RandomAccess.isIntra(slice.type, isHEVC: isHEVC) else { return }
        let isStart = RandomAccess.isStart(
            frame.payload, from: frame.bodyIndex, lengthSize: self.lengthSize, slice, isHEVC: isHEVC)
        guard let isStart, isStart != isFlagged, let first = frame.payload.getInteger(at: frame.payload.readerIndex, as: UInt8.self) else {
            return
        }
        // FLV 10.1 §E.4.3.1 and Enhanced RTMP: three bits, 1 for a keyframe and 2 for an inter frame.
        frame.payload.setInteger(first & 0x8F | (isStart ? 0x10 : 0x20), at: frame.payload.readerIndex)
        if isStart {
            frame.tag.flags.insert(.keyframe)
            frame.tag.flags.remove(.disposable)
        } else {
            frame.tag.flags.remove(.keyframe)
        }
        self.videoFlaws.reflagged &+= 1
    }

    // MARK: Sequence headers of pictures

    /// The sequence header that the frame's own parameter sets make, if no other is there, or they have changed.
    private mutating func header(in frame: Frame, isHEVC: Bool) -> Frame? {
        if case .sent = self.videoHeader { return nil }
        let units = NALWalk.units(frame.payload, from: frame.bodyIndex, lengthSize: self.lengthSize)
        guard let record = Self.record(of: units, isHEVC: isHEVC) else { return nil }
        if case .made(let before) = self.videoHeader, before == record { return nil }
        guard let first = frame.payload.getInteger(at: frame.payload.readerIndex, as: UInt8.self) else { return nil }
        var payload: ByteBuffer
        if frame.tag.flags.contains(.enhanced) {
            payload = ByteBuffer(bytes: [0x90])
            payload.writeInteger((isHEVC ? VideoCodec.hevc : .avc).fourCC?.rawValue ?? 0)
        } else {
            payload = ByteBuffer(bytes: [0x10 | first & 0x0F, 0, 0, 0, 0])
        }
        payload.writeImmutableBuffer(record)
        guard let header = Self.frame(.video, at: frame.timestamp, payload) else { return nil }
        self.videoHeader = .made(record)
        self.videoMayPlay = true
        self.videoFlaws.headersMade &+= 1
        return header
    }

    private static func record(of units: [ByteBuffer], isHEVC: Bool) -> ByteBuffer? {
        isHEVC ? HEVCConfiguration.record(of: units) : AVCConfiguration.record(of: units)
    }

    /// Nil for a record that cannot be read.
    private static func lengthSize(_ header: Frame, isHEVC: Bool) -> Int? {
        do throws(MediaError) {
            return isHEVC ? try HEVCConfiguration(header.body).nalLengthSize : try AVCConfiguration(header.body).nalLengthSize
        } catch {
            // It is relayed as it came; players may know more.
            return nil
        }
    }

    private static func frame(_ kind: Frame.Kind, at timestamp: Int64, _ payload: ByteBuffer) -> Frame? {
        do throws(MediaError) {
            return try Frame(kind: kind, timestamp: timestamp, payload: payload)
        } catch {
            // Cannot happen: the header was made here.
            return nil
        }
    }

    // MARK: Sound

    private mutating func examineAudio(_ frame: inout Frame) -> Outcome {
        if frame.tag.flags.contains(.coded) { return self.examineSound(&frame) }
        guard frame.tag.flags.contains(.sequenceHeader) else { return .relay }
        guard frame.bodyBytes > 0 else { return .drop }
        self.audioMayPlay = true
        // Its object type would be 95, which nobody has defined.
        if let config = ADTSHeader(frame.payload, at: frame.bodyIndex)?.config {
            frame.replaceBody(with: ByteBuffer(bytes: config))
            self.audioFlaws.headersMade &+= 1
        }
        do throws(MediaError) {
            _ = try AudioSpecificConfig(frame.body)
            self.audioHeader = .sent
        } catch {
            // It is relayed as it came; players may know more.
            return .relay
        }
        return .relay
    }

    private mutating func examineSound(_ frame: inout Frame) -> Outcome {
        var outcome = Outcome.relay
        let start = frame.bodyIndex
        if ADTSHeader.begins(frame.payload, at: start) {
            // A frame of several blocks would have to become several messages.
            guard let header = ADTSHeader(frame.payload, at: start), header.frameLength == frame.bodyBytes, !header.hasSeveralBlocks,
                header.length < header.frameLength,
                let block = frame.payload.getSlice(at: start &+ header.length, length: header.frameLength &- header.length)
            else {
                self.audioFlaws.broken &+= 1
                frame.tag.flags.insert(.unusable)
                return .relay
            }
            if let made = self.header(from: header, before: frame) { outcome = .precede(made) }
            frame.replaceBody(with: block)
            self.audioFlaws.reframed &+= 1
        }
        if !self.audioHeader.isThere {
            self.audioFlaws.headless &+= 1
            frame.tag.flags.insert(.unusable)
            if self.videoMayPlay, !self.audioMayPlay { frame.tag.flags.insert(.headless) }
        }
        return outcome
    }

    /// The sequence header that says what an ADTS header says, if no other is there, or it has changed.
    private mutating func header(from adts: ADTSHeader, before frame: Frame) -> Frame? {
        if case .sent = self.audioHeader { return nil }
        guard let config = adts.config, let first = frame.payload.getInteger(at: frame.payload.readerIndex, as: UInt8.self) else {
            return nil
        }
        let record = ByteBuffer(bytes: config)
        if case .made(let before) = self.audioHeader, before == record { return nil }
        var payload: ByteBuffer
        if frame.tag.flags.contains(.enhanced) {
            payload = ByteBuffer(bytes: [0x90])
            payload.writeInteger(AudioCodec.aac.fourCC?.rawValue ?? 0)
        } else {
            payload = ByteBuffer(bytes: [first, 0])
        }
        payload.writeImmutableBuffer(record)
        guard let header = Self.frame(.audio, at: frame.timestamp, payload) else { return nil }
        self.audioHeader = .made(record)
        self.audioMayPlay = true
        self.audioFlaws.headersMade &+= 1
        return header
    }
}

extension Frame {
    /// Where the codec's data begins in the payload's buffer.
    fileprivate var bodyIndex: Int { self.payload.readerIndex &+ min(Int(self.tag.bodyOffset), self.payload.readableBytes) }
    fileprivate var bodyBytes: Int { self.payload.writerIndex &- self.bodyIndex }

    /// Keeps the message's header. Leaves room behind the data, which libav needs to read it in place.
    fileprivate mutating func replaceBody(with body: ByteBuffer) {
        let head = min(Int(self.tag.bodyOffset), self.payload.readableBytes)
        var payload = ByteBuffer()
        payload.reserveCapacity(head &+ body.readableBytes &+ 64)
        payload.writeImmutableBuffer(self.payload.getSlice(at: self.payload.readerIndex, length: head) ?? ByteBuffer())
        payload.writeImmutableBuffer(body)
        self.payload = payload
    }
}
