internal import CFFmpeg
package import Media
package import NIOCore

/// Muxes samples into fragmented MP4 or MPEG-TS in memory, fragment by fragment.
///
/// Owned by one consumer of a stream, used on one thread at a time. Video runs on a 90 kHz clock, audio on its sample rate. Decode and
/// presentation times are the stream's minus the origin, so there are no edit lists and no negative composition offsets, which FFmpeg's
/// demuxer would show late: see ``leadMs``. Times that do not rise are moved up; see ``adjustedTimestamps``.
package final class FragmentMuxer {
    package let tracks: [Track]
    package let format: ContainerFormat
    /// ftyp and moov. Empty for MPEG-TS, whose fragments carry their own tables.
    package let initialization: ByteBuffer
    /// The number of the next fragment.
    package private(set) var nextSequenceNumber: UInt32
    /// Samples that libavformat rejected.
    package private(set) var lostSamples = 0
    /// The kind of the newest of them.
    package private(set) var lostKind: Frame.Kind?
    private let output: Output
    private let packet: Packet
    private var timelines: [TrackTimeline]
    /// Bytes.
    private let maxPendingBytes: Int
    /// Payload bytes written since the last flush.
    package private(set) var pendingBytes = 0
    /// The start of each track's next fragment on libavformat's own timeline. Ticks.
    private var written: [Int64]

    private static let videoTimescale: Int64 = 90_000
    private static let videoID: Int32 = 1
    private static let audioID: Int32 = 2

    /// - Parameters:
    ///   - tracks: at most one video and one audio track; at least one.
    ///   - originMs: the moment of the stream's timeline that becomes the container's 0.
    ///   - maxPendingBytes: of payload, in one fragment.
    ///   - outlivesTracks: readers may continue with a later muxer's fragments, which also have the other kind of track.
    ///   - leadMs: of an earlier muxer of the same stream.
    ///
    /// Throws `.unsupported` for codecs that the container cannot hold.
    package init(
        tracks: [Track], format: ContainerFormat = .fmp4, originMs: Int64 = 0, firstSequenceNumber: UInt32 = 1,
        maxPendingBytes: Int = 64 << 20,
        outlivesTracks: Bool = false, leadMs: Int64 = 0
    ) throws(FFmpegError) {
        guard (1...2).contains(tracks.count), Set(tracks.map(\.kind)).count == tracks.count else {
            throw .unsupported("a container of \(tracks.count) tracks of \(tracks.map(\.kind))")
        }
        for track in tracks where !track.isSupported(in: format) {
            throw .unsupported("\(track.codecName) in \(format.name)")
        }
        self.tracks = tracks
        self.format = format
        self.maxPendingBytes = maxPendingBytes
        self.nextSequenceNumber = firstSequenceNumber
        self.output = try Output(format: format == .fmp4 ? "mp4" : "mpegts")
        self.packet = try Packet()
        self.timelines = tracks.map { track in
            let timescale = track.kind == .video || format == .mpegTS ? Self.videoTimescale : Int64(track.sampleRate)
            return TrackTimeline(track, timescale: timescale, originMs: originMs, leadMs: leadMs)
        }
        self.written = tracks.map { _ in 0 }
        for track in tracks { try Self.addStream(track, format, to: self.output) }
        let context = self.output.context
        context.pointee.flags |= AVFMT_FLAG_BITEXACT
        context.pointee.avoid_negative_ts = 0
        context.pointee.strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL
        switch format {
        case .fmp4:
            // FLV samples already have MP4's form: keep libavformat from converting by its own guess.
            context.pointee.flags &= ~AVFMT_FLAG_AUTO_BSF
            try self.output.writeHeader([
                ("movflags", "frag_custom+empty_moov+default_base_moof+skip_trailer"), ("use_editlist", "0"),
                ("use_stream_ids_as_track_ids", "1"),
                ("video_track_timescale", String(Self.videoTimescale)),
            ])
        case .mpegTS:
            // Over half a second of buffer between clock and decoder, like ffmpeg's own HLS. It is constant, so fragments stay continuous.
            context.pointee.max_delay = 700_000
            try self.output.writeHeader([("pat_period", "3600"), ("sdt_period", "3600")])
        }
        var initialization = self.output.popBytes()
        if outlivesTracks, format == .fmp4, tracks.count == 1, let track = tracks.first {
            let ids = [Self.videoID, Self.audioID].filter { $0 != Self.id(of: track, format) }
            for id in ids { initialization = try MovieHeader.addingDefaults(ofTrack: UInt32(id), to: initialization) }
        }
        self.initialization = initialization
        for index in tracks.indices {
            let base = context.pointee.streams[index]?.pointee.time_base ?? AVRational(num: 0, den: 1)
            guard base.num == 1, Int64(base.den) == self.timelines[index].timescale else {
                throw .unsupported("a time base of \(base.num)/\(base.den)")
            }
        }
    }

    private static func addStream(_ track: Track, _ format: ContainerFormat, to output: Output) throws(FFmpegError) {
        let stream = try output.addStream()
        guard let parameters = stream.pointee.codecpar else { throw .unsupported("a stream without parameters") }
        stream.pointee.id = Self.id(of: track, format)
        try track.fill(parameters)
        stream.pointee.time_base = AVRational(num: 1, den: track.kind == .video ? Int32(Self.videoTimescale) : Int32(track.sampleRate))
        // Apple's players accept only hvc1: parameter sets in the header, not in the samples.
        if track.codec == .video(.hevc), format == .fmp4 { parameters.pointee.codec_tag = earshot_tag_hvc1 }
    }

    /// The track's id in MP4, its PID in MPEG-TS. Each kind of media has its own, even when the other is absent. So a player that keeps
    /// its state when tracks appear or vanish never confuses pictures with sound.
    private static func id(of track: Track, _ format: ContainerFormat) -> Int32 {
        switch format {
        case .fmp4: track.kind == .video ? Self.videoID : Self.audioID
        case .mpegTS: track.kind == .video ? 0x100 : 0x101
        }
    }

    /// "avc1.64001f,mp4a.40.2": RFC 6381, for HLS's CODECS attribute.
    package var codecsString: String { self.tracks.map(\.codecsString).filter { !$0.isEmpty }.joined(separator: ",") }

    /// The type for MediaSource's `addSourceBuffer` and for Content-Type.
    package var mimeType: String {
        switch self.format {
        case .fmp4: "\(self.tracks.contains { $0.kind == .video } ? "video" : "audio")/mp4; codecs=\"\(self.codecsString)\""
        case .mpegTS: "video/mp2t"
        }
    }

    /// Decode and presentation times that were moved: not rising, before the origin, or implausible.
    package var adjustedTimestamps: Int { self.timelines.reduce(0) { $0 + $1.adjusted } }

    /// Milliseconds by which pictures are decoded before their timestamps, because of negative composition times.
    package var leadMs: Int64 { self.timelines.reduce(0) { max($0, $1.leadMs) } }

    /// The shortest recent duration of a picture in milliseconds; nil before three have arrived.
    package var pictureMs: Int64? { self.timelines.first { $0.track.kind == .video }?.pictureMs }

    /// Whether a flush would return nothing.
    package var isEmpty: Bool { self.timelines.allSatisfy(\.isEmpty) }

    /// Adds a sample to its track; samples of a kind without a track are ignored.
    ///
    /// Throws `.timestampJump` for a sample over 60 s ahead of its track's last in this fragment (flush and write it again, or begin a
    /// discontinuity) or over 10 s behind it (make a new muxer), `.overLimit` when the fragment grows too large; neither adds the
    /// sample. Throws `.library` when libavformat rejects the track's previous sample, which is lost and counted; the muxer can
    /// continue.
    package func write(_ sample: Sample) throws(FFmpegError) {
        guard let index = self.tracks.firstIndex(where: { $0.kind == sample.kind }), sample.payload.readableBytes > 0 else { return }
        try self.timelines[index].judge(sample)
        let bytes = self.pendingBytes + sample.payload.readableBytes
        guard bytes <= self.maxPendingBytes else { throw .overLimit(field: "fragment (bytes)", found: bytes, max: self.maxPendingBytes) }
        self.pendingBytes = bytes
        guard let (timed, duration) = self.timelines[index].push(sample) else { return }
        do throws(FFmpegError) {
            try self.put(timed, duration, index)
        } catch {
            self.lost(index)
            throw error
        }
    }

    /// Ends the fragment and returns it; nil when nothing was written since the last.
    ///
    /// - Parameters:
    ///   - next: the first sample of the next fragment. If it is video, its decode time ends the last picture here; otherwise the last
    ///     sample lasts as long as the codec says (audio) or as the one before it (video).
    ///   - keepsPicture: the newest picture moves to the next fragment, where its duration will be known.
    package func flush(before next: Sample? = nil, keepsPicture: Bool = false) throws(FFmpegError) -> Fragment? {
        guard !self.isEmpty else { return nil }
        for index in self.timelines.indices where !keepsPicture || self.tracks[index].kind != .video {
            // Audio advances by the codec's run length, whatever the milliseconds say: the clock avoids gaps.
            let until = next.flatMap {
                $0.kind == self.tracks[index].kind && $0.kind == .video ? self.timelines[index].ticks(ofDecodeMs: $0.dts) : nil
            }
            guard let (timed, duration) = self.timelines[index].release(until: until) else { continue }
            do throws(FFmpegError) {
                try self.put(timed, duration, index)
            } catch {
                // One rejected sample is no reason to lose the others.
                self.lost(index)
            }
        }
        defer { self.fragmentEnded() }
        self.output.reserve(self.pendingBytes + 4_096)
        try self.output.flush()
        var bytes = self.output.popBytes()
        guard bytes.readableBytes > 0 else { return nil }
        if self.format == .fmp4 {
            var times: [UInt32: UInt64] = [:]
            for (index, timeline) in self.timelines.enumerated() {
                guard let first = timeline.first else { continue }
                times[UInt32(Self.id(of: self.tracks[index], .fmp4))] = UInt64(max(0, first.dts))
            }
            try MovieFragment.renumber(&bytes, sequenceNumber: self.nextSequenceNumber, times: times)
        } else {
            try self.output.set("mpegts_flags", "+resend_headers")
        }
        return self.describe(bytes)
    }

    private func describe(_ bytes: ByteBuffer) -> Fragment? {
        let video = self.timelines.first { $0.track.kind == .video }
        let leading = video.flatMap { $0.first == nil ? nil : $0 } ?? self.timelines.first { $0.first != nil }
        guard let leading, let first = leading.first else { return nil }
        return Fragment(
            bytes: bytes, startMs: leading.ms(ofTicks: first.dts), endMs: leading.ms(ofTicks: leading.end),
            isIndependent: video.map { $0.first?.isKeyframe ?? false } ?? true, holdsPictures: video?.first != nil,
            sequenceNumber: self.nextSequenceNumber, samples: self.timelines.reduce(0) { $0 + $1.count })
    }

    private func lost(_ index: Int) {
        self.lostSamples += 1
        self.lostKind = self.tracks[index].kind
    }

    private func fragmentEnded() {
        for index in self.timelines.indices {
            if let first = self.timelines[index].first { self.written[index] += self.timelines[index].end - first.dts }
            self.timelines[index].fragmentEnded()
        }
        self.pendingBytes = 0
        self.nextSequenceNumber &+= 1
    }

    private func put(_ timed: TrackTimeline.TimedSample, _ duration: Int64, _ index: Int) throws(FFmpegError) {
        try self.packet.fill(timed.payload)
        let packet = self.packet.pointer
        packet.pointee.stream_index = Int32(index)
        packet.pointee.duration = duration
        packet.pointee.flags = timed.isKeyframe ? AV_PKT_FLAG_KEY : 0
        switch self.format {
        case .fmp4:
            // libavformat mends gaps and overlaps between fragments in its own way. So it gets gapless times, and the real decode time
            // is patched in afterwards.
            let timeline = self.timelines[index]
            packet.pointee.dts = timed.dts - (timeline.first?.dts ?? timed.dts) + self.written[index]
        case .mpegTS:
            packet.pointee.dts = timed.dts
        }
        packet.pointee.pts = packet.pointee.dts + (timed.pts - timed.dts)
        try self.output.write(self.packet)
    }
}
