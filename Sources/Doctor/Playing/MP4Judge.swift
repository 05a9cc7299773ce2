import CommandSupport
import NIOCore

/// Judges fragmented MP4 made of the clip (ISO/IEC 14496-12). A plain value.
struct MP4Judge {
    /// The keyframe first.
    private let samples: [[UInt8]]
    private var buffer = ByteBuffer()
    private(set) var hasBeginning = false
    private(set) var fragments = 0
    private(set) var pictures = 0
    private var times: [UInt32: UInt64] = [:]
    private(set) var problem: String?

    /// Bytes; the clip's pieces have some thousands.
    private static let largestBox = 16 << 20

    init(_ clip: DoctorClip) {
        // The messages without FLV's header: five bytes of video, two of audio.
        self.samples =
            clip.pictures.map { Array($0.readableBytesView.dropFirst(5)) } + clip.tones.map { Array($0.readableBytesView.dropFirst(2)) }
    }

    mutating func append(_ bytes: inout ByteBuffer) {
        // Moved out of the judge while boxes are read, so that their bytes are not copied.
        var buffer = self.buffer
        self.buffer = ByteBuffer()
        buffer.writeBuffer(&bytes)
        while self.problem == nil, let (type, body) = self.box(in: &buffer) { self.read(type, body) }
        buffer.discardReadBytes()
        self.buffer = buffer
    }

    /// §4.2: size (4, itself included), type (4). nil until the whole box is there.
    private mutating func box(in buffer: inout ByteBuffer) -> (String, ByteBuffer)? {
        guard let size = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self),
            let type = buffer.getString(at: buffer.readerIndex + 4, length: 4)
        else { return nil }
        guard (8...Self.largestBox).contains(Int(size)) else {
            self.problem = "a box \"\(DisplayText.escaped(type))\" of \(size) bytes"
            return nil
        }
        guard let whole = buffer.readSlice(length: Int(size)), let body = whole.getSlice(at: whole.readerIndex + 8, length: Int(size) - 8)
        else {
            return nil
        }
        return (type, body)
    }

    private mutating func read(_ type: String, _ body: ByteBuffer) {
        switch type {
        case "moov":
            self.hasBeginning = Self.holds(body, Array("avc1".utf8)) && Self.holds(body, Array("mp4a".utf8))
            if !self.hasBeginning { self.problem = "its beginning announces no H.264 or no AAC" }
        case "moof":
            self.fragments += 1
            self.readTimes(body)
        case "mdat":
            self.readSamples(body)
        default: break
        }
    }

    /// Samples lie one behind another, without anything between: each must be one that was pushed.
    private mutating func readSamples(_ body: ByteBuffer) {
        var rest = body
        while rest.readableBytes > 0 {
            let bytes = rest.readableBytesView
            guard let sample = self.samples.first(where: { bytes.starts(with: $0) }) else {
                self.problem = "\(rest.readableBytes) bytes of samples that were not pushed"
                return
            }
            if sample == self.samples[0] { self.pictures += 1 }
            rest.moveReaderIndex(forwardBy: sample.count)
        }
    }

    /// §8.8: each traf has a tfhd (flags, track) and a tfdt (version, flags, time).
    private mutating func readTimes(_ moof: ByteBuffer) {
        var moof = moof
        while let (type, traf) = self.box(in: &moof) {
            guard type == "traf" else { continue }
            var traf = traf
            var track: UInt32?
            while let (type, body) = self.box(in: &traf) {
                let start = body.readerIndex
                if type == "tfhd" { track = body.getInteger(at: start + 4, as: UInt32.self) }
                guard type == "tfdt", let track else { continue }
                let isLong = body.getInteger(at: start, as: UInt8.self) == 1
                let time =
                    isLong
                    ? body.getInteger(at: start + 4, as: UInt64.self) : body.getInteger(at: start + 4, as: UInt32.self).map { UInt64($0) }
                guard let time else { continue }
                if let last = self.times[track], time <= last {
                    self.problem = "the time of track \(track) did not rise: \(last), then \(time)"
                }
                self.times[track] = time
            }
        }
    }

    private static func holds(_ buffer: ByteBuffer, _ bytes: [UInt8]) -> Bool {
        buffer.withUnsafeReadableBytes { all in
            guard let first = bytes.first, all.count >= bytes.count else { return false }
            return (0...all.count - bytes.count).contains { all[$0] == first && all[$0..<$0 + bytes.count].elementsEqual(bytes) }
        }
    }

    /// Names the missing part; nil once the picture and at least `least` fragments with rising times have come.
    func missing(fragments least: Int) -> String? {
        if let problem = self.problem { return problem }
        if !self.hasBeginning { return "no beginning (moov) came" }
        if self.fragments < least { return "\(self.fragments) of \(least) fragments came" }
        return self.pictures == 0 ? "the pushed picture is not in it" : nil
    }
}
