import FFmpeg
import Media
import NIOCore
import Relay

/// Makes pieces of fragmented MP4 (or MPEG-TS) from a stream's frames.
///
/// Owned by one receiver's actor, on its thread. Has no clock: `nowMs` is steady, `wallMs` counts from 1970.
final class FragmentPackager {
    private unowned let taker: any FragmentSink
    let format: ContainerFormat
    /// New tracks, or a break of the timeline, restart the container at zero.
    private let rebases: Bool
    private var tracks: StreamTracks
    private var muxer: FragmentMuxer?
    private var transcoder: AudioTranscoder?
    /// The sound of a run for players that has none: they keep the tracks that they began with, and stop where sound begins later (MediaSource;
    /// hls.js 1.6).
    private var silence: SilentSound?
    /// Frames held until the tracks are known.
    private var held = HeldFrames()
    /// Sound that waits for a keyframe to become a track: see ``holdLate(_:)``.
    private var lateSounds = HeldFrames()
    /// The muxers' zero, in milliseconds of the stream's timeline.
    private var originMs: Int64?
    private var lastTracks: [Track] = []
    /// Prepended to the run's first keyframe: see ``Track/parameterSets``.
    private var keyframePrefix: ByteBuffer?
    /// The leading kind's newest frame, then the run's expected end, on the stream's timeline.
    private var newestMs: Int64?
    private var runEndMs: Int64 {
        max((self.newestMs ?? 0) + max(1, self.leadStepMs), (self.newestSoundMs ?? .min / 2) + Self.usualSoundMs)
    }
    /// The newest sample of each kind, in this run.
    private var newestPictureMs: Int64?
    private var newestSoundMs: Int64?
    /// Where the sound of the run before ended, until this run's first.
    private var soundEndMs: Int64?
    /// The newest picture is a keyframe.
    private var isNewestKeyframe = false
    /// The next frame does not continue the timeline.
    private var hasLeapt = false
    /// Frames of the run before are in no piece.
    private var hasLost = false
    private var nextSequenceNumber: UInt32 = 1
    /// The lead of the pictures' decode times in the runs so far: see ``FragmentMuxer/leadMs``.
    private var leadMs: Int64 = 0
    /// The wall clock's time of the stream's zero. It follows the publisher's clock; each piece has its own value.
    private var wallOffsetMs: Int64 = 0
    /// The same for the newest frame of the present batch. It applies at once, or from the next run after a leap.
    private var newWallOffsetMs: Int64 = 0
    private var pieceStartMs: Int64?
    private var lastLeadMs: Int64?
    /// Time between the last two frames of the leading kind.
    private var leadStepMs: Int64 = 0
    private var leadKind = Frame.Kind.video
    private var hasKeyframe = false
    /// Samples of sound in a row that the muxer did not take.
    private var refusedSounds = 0
    /// Frames that were left out, and why.
    var leftOut = LeftOutFrames()
    /// The reasons why media was not remuxed, each listed once.
    var problems: [String] { self.leftOut.problems }

    init(_ format: ContainerFormat, for taker: any FragmentSink, rebases: Bool = false) {
        self.format = format
        self.rebases = rebases
        self.taker = taker
        // Players stall on a track without samples. A file may have such a pause; only a long one justifies another file.
        self.tracks = StreamTracks(format, awayMs: rebases ? 30_000 : 2_000)
    }

    /// Processes a batch of frames.
    func receive(_ items: [TapItem], nowMs: Int64, wallMs: Int64) {
        // The newest frame has just arrived; the first may be cached pictures for a joiner.
        for case .frame(let frame) in items.reversed() {
            self.newWallOffsetMs = wallMs - frame.timestamp
            // After a leap the open pieces keep the old offset.
            if !self.isFar(frame.timestamp, from: self.newestMs) { self.wallOffsetMs = self.newWallOffsetMs }
            break
        }
        for item in items {
            switch item {
            case .prelude(let frames):
                for frame in frames { self.receive(frame, nowMs: nowMs) }
            case .frame(let frame): self.receive(frame, nowMs: nowMs)
            case .restarted:
                self.interrupt(nowMs: nowMs)
                // The next publisher may have other kinds of media: what came from this one says nothing about it.
                self.tracks.forgetTimes()
            case .ended: self.interrupt(nowMs: nowMs)
            }
        }
    }

    /// Ends the open piece when the next frame is overdue.
    ///
    /// In files, and in streams whose pictures usually come this slowly, the piece includes the last picture. Otherwise that picture stays for the
    /// next piece: its duration is unknown, and MediaSource drops everything up to a keyframe after a picture whose declared duration was too short.
    func closeStalled(nowMs: Int64) {
        guard let muxer = self.muxer else { return }
        let isUsual = muxer.pictureMs.map { $0 >= FrameMailbox.stallMs } ?? false
        self.cut(before: nil, keptMs: self.rebases || isUsual ? nil : self.newestPictureMs, isCutShort: true, nowMs: nowMs)
    }

    /// The frames that wake this packager; nil: all frames.
    var patience: FrameMailbox.Patience? {
        guard self.muxer != nil, let start = self.pieceStartMs, let last = self.lastLeadMs else { return nil }
        let due = self.taker.due(frameMs: self.leadStepMs)
        return FrameMailbox.Patience(
            leads: self.leadKind, dueMs: start + due.pendingMs, keyframeDueMs: start + due.keyframeMs, newestMs: last)
    }

    /// Ends the run; no more frames follow.
    func finish(nowMs: Int64) { self.interrupt(nowMs: nowMs) }

    // MARK: Tracks

    private func receive(_ frame: Frame, nowMs: Int64) {
        guard frame.kind != .data else {
            self.tracks.receiveMetadata(frame)
            return
        }
        do throws(FFmpegError) {
            self.noteTrack(frame, nowMs: nowMs)
            // The relay's verdict names media that containers cannot hold.
            guard !frame.tag.flags.contains(.unusable), let sample = Sample(frame) else { return }
            if let cause = self.tracks.refusal(of: sample.kind) { self.leftOut.note(sample.kind, cause) }
            if self.isInRun(sample.kind), self.isFar(sample.dts, from: sample.kind == .video ? self.newestPictureMs : self.newestSoundMs) {
                self.leap(nowMs: nowMs)
            }
            self.tracks.notePresence(of: sample)
            if self.muxer == nil {
                try self.hold(frame, nowMs: nowMs)
            } else if let (hasVideo, hasAudio) = self.otherTracks(from: sample) {
                self.cut(before: sample, nowMs: nowMs)
                let lateSounds = hasAudio ? self.lateSounds.frames : []
                self.interrupt(nowMs: nowMs)
                for sound in lateSounds { self.held.add(sound) }
                self.held.add(frame)
                try self.begin(hasVideo: hasVideo, hasAudio: hasAudio, nowMs: nowMs)
            } else {
                if self.rebases, !self.isInRun(sample.kind) { self.holdLate(frame) }
                try self.write(sample, nowMs: nowMs)
            }
        } catch .timestampJump {
            // Only one track has jumped. It begins the next run, like any other jump.
            self.leap(nowMs: nowMs)
        } catch {
            self.fail(error, nowMs: nowMs)
        }
    }

    /// Ends the run where the timeline breaks; the next keyframe begins another.
    private func leap(nowMs: Int64) {
        self.interrupt(nowMs: nowMs)
        self.tracks.forgetTimes()
        self.hasLeapt = true
        self.wallOffsetMs = self.newWallOffsetMs
    }

    private func isFar(_ ms: Int64, from last: Int64?) -> Bool {
        guard let last else { return false }
        return ms < last - Self.leapMs.back || ms > last + Self.leapMs.ahead
    }

    private func isInRun(_ kind: Frame.Kind) -> Bool {
        guard let muxer = self.muxer, kind == .video || self.silence == nil else { return false }
        return muxer.tracks.contains { $0.kind == kind }
    }

    private func otherTracks(from sample: Sample) -> (hasVideo: Bool, hasAudio: Bool)? {
        self.tracks.change(at: sample, hadVideo: self.isInRun(.video), hadAudio: self.isInRun(.audio))
    }

    /// Holds sound that starts during a run; it becomes a track at the next keyframe. A file then has it from its beginning; live players, which
    /// cannot go back, miss this short part.
    private func holdLate(_ frame: Frame) {
        guard frame.kind == .audio, self.tracks.audio != nil else { return }
        if let first = self.lateSounds.firstMs, frame.timestamp - first > Self.lateSoundMs { self.lateSounds = HeldFrames() }
        self.lateSounds.add(frame)
    }

    /// Handles a changed track: it ends the run that has the track, and the next run begins at a keyframe.
    private func noteTrack(_ frame: Frame, nowMs: Int64) {
        guard let change = self.tracks.receive(frame) else { return }
        if let problem = change.problem { self.leftOut.list(problem) }
        if self.isInRun(frame.kind) { self.interrupt(nowMs: nowMs) }
    }

    private func hold(_ frame: Frame, nowMs: Int64) throws(FFmpegError) {
        self.held.add(frame)
        guard let firstMs = self.held.firstMs else { return }
        let spanMs = frame.timestamp - firstMs
        let hasSound = self.tracks.audio != nil && self.held.hasSound(near: frame.timestamp)
        let isSettled = spanMs >= (self.tracks.lacksAnnounced(hasSound: hasSound) ? Self.announcedMs : Self.settleMs) || spanMs < 0
        if self.tracks.video != nil, let keyframe = self.held.firstKeyframe {
            guard hasSound || isSettled else { return }
            // A file keeps the sound that viewers heard; players begin with a picture.
            self.held.removeFirst(keyframe, keepsSound: self.rebases)
            try self.begin(hasVideo: true, hasAudio: hasSound, nowMs: nowMs)
        } else if hasSound {
            let withoutPicturesMs = frame.timestamp - (self.held.newestPictureMs ?? firstMs)
            // A file keeps all tracks, so it also waits for a kind that the metadata excludes.
            let isAlone = self.tracks.isSoundAlone && !self.rebases
            guard self.tracks.video == nil ? isSettled || isAlone : withoutPicturesMs >= Self.noPictureMs else { return }
            try self.begin(hasVideo: false, hasAudio: true, nowMs: nowMs)
        }
    }

    // MARK: Pieces

    /// Begins a run with the held frames.
    private func begin(hasVideo: Bool, hasAudio: Bool, nowMs: Int64) throws(FFmpegError) {
        let held = self.held.frames
        self.held = HeldFrames()
        guard let first = held.first else { return }
        self.transcoder = nil
        var tracks: [Track] = []
        if hasVideo, let video = self.tracks.video { tracks.append(video) }
        if hasAudio, let audio = self.tracks.audio {
            if self.rebases ? audio.needsTranscode : audio.needsTranscodeToPlay(in: self.format) {
                if let transcoder = self.transcoder(for: audio) { tracks.append(transcoder.track) }
            } else {
                tracks.append(audio)
            }
        }
        guard let track = tracks.first else { return }
        self.silence = !self.rebases && tracks.count == 1 && track.kind == .video ? try SilentSound(startMs: first.timestamp) : nil
        if let silence = self.silence { tracks.append(silence.track) }
        let origin = self.origin(for: tracks, from: first.timestamp)
        // The hole between the end of the run before and this one, in the container's time.
        let holeMs = self.originMs.map { first.timestamp - origin - (self.runEndMs - $0) }
        let goesOn = !self.hasLost && (holeMs.map { (-Self.usualSoundMs...Self.holeMs).contains($0) } ?? false)
        self.hasLost = false
        self.soundEndMs = goesOn ? self.endOfSound(from: self.originMs ?? origin, to: origin) : nil
        let (before, after) = (self.lastTracks.first { $0.kind == .video }, tracks.first { $0.kind == .video })
        self.keyframePrefix = self.format == .fmp4 && !self.rebases && before != nil && before != after ? after?.parameterSets : nil
        self.lastTracks = tracks
        self.hasLeapt = false
        self.wallOffsetMs = self.newWallOffsetMs
        self.newestPictureMs = nil
        self.newestSoundMs = nil
        try self.begin(tracks, originMs: origin, goesOn: goesOn, nowMs: nowMs)
        for frame in held {
            if let sample = Sample(frame) { try self.write(sample, nowMs: nowMs) }
        }
    }

    /// The container's zero for a run that begins at `ms`.
    ///
    /// Unless it restarts at zero, the container's time continues across breaks and pauses: players of HLS or MediaSource stop before a
    /// hole, and no container has times before its zero.
    private func origin(for tracks: [Track], from ms: Int64) -> Int64 {
        guard let origin = self.originMs else { return ms }
        let leaps = self.hasLeapt || self.isFar(ms, from: self.newestMs)
        if self.rebases { return leaps || tracks != self.lastTracks ? ms : origin }
        let hasHole = self.newestMs != nil && ms - self.runEndMs > Self.holeMs
        return leaps || hasHole || ms < origin ? ms - max(0, self.runEndMs - origin) : origin
    }

    /// Nil: the sound cannot be transcoded and is left out.
    private func transcoder(for audio: Track) -> AudioTranscoder? {
        do throws(FFmpegError) {
            let made = try AudioTranscoder(audio)
            self.transcoder = made
            return made
        } catch {
            self.refuseAudio(error)
            return nil
        }
    }

    private func refuseAudio(_ error: FFmpegError) {
        let cause = "\(self.tracks.audio?.codecName ?? "audio") cannot be transcoded: \(error)"
        self.leftOut.list(cause)
        self.tracks.refuseAudio(cause)
        self.transcoder = nil
    }

    private func begin(_ tracks: [Track], originMs: Int64, goesOn: Bool = false, nowMs: Int64) throws(FFmpegError) {
        if originMs != self.originMs { self.nextSequenceNumber = 1 }
        self.originMs = originMs
        self.keepLead()
        let muxer = try FragmentMuxer(
            tracks: tracks, format: self.format, originMs: originMs, firstSequenceNumber: self.nextSequenceNumber,
            outlivesTracks: !self.rebases, leadMs: self.leadMs)
        self.muxer = muxer
        self.refusedSounds = 0
        self.pieceStartMs = nil
        self.lastLeadMs = nil
        self.tracks.soundsSincePicture = 0
        self.hasKeyframe = false
        self.taker.began(
            Beginning(
                initialization: muxer.initialization, mimeType: muxer.mimeType, codecs: muxer.codecsString, tracks: muxer.tracks,
                originMs: originMs, goesOn: goesOn),
            nowMs: nowMs)
    }

    private func write(_ sample: Sample, nowMs: Int64) throws(FFmpegError) {
        guard let tracks = self.muxer?.tracks, self.isInRun(sample.kind) else { return }
        let leads = self.noteLead(sample, tracks)
        // Sound alone can begin anywhere, but beside pictures it cannot.
        let isKeyframe = sample.kind == .video ? sample.isKeyframe : tracks.count == 1
        if leads {
            self.cutIfDue(sample, isKeyframe: isKeyframe, nowMs: nowMs)
            if self.muxer != nil, self.pieceStartMs == nil, self.taker.consumeSplit() {
                try self.begin(tracks, originMs: sample.dts, nowMs: nowMs)
            }
        }
        guard let muxer = self.muxer else { return }
        try self.addSilence(before: sample.dts)
        if sample.kind == .audio, let end = self.soundEndMs {
            self.soundEndMs = nil
            try self.fillSound(from: end, to: sample.dts)
        }
        guard try self.put(sample, into: muxer, nowMs: nowMs) else { return }
        guard leads else { return }
        if self.pieceStartMs == nil { self.pieceStartMs = sample.dts }
        if isKeyframe { self.hasKeyframe = true }
        if sample.kind == .video { self.isNewestKeyframe = isKeyframe }
        self.leadStepMs = max(0, sample.dts - (self.lastLeadMs ?? sample.dts))
        self.lastLeadMs = sample.dts
        self.leadKind = sample.kind
        self.newestMs = sample.dts
    }

    /// Returns false if the sound had to be given up, and the run with it.
    private func put(_ sample: Sample, into muxer: FragmentMuxer, nowMs: Int64) throws(FFmpegError) -> Bool {
        var samples = [sample]
        if let prefix = self.keyframePrefix, sample.kind == .video, sample.isKeyframe {
            self.keyframePrefix = nil
            var payload = prefix
            payload.writeImmutableBuffer(sample.payload)
            samples[0].payload = payload
        }
        if sample.kind == .audio, let transcoder = self.transcoder {
            do throws(FFmpegError) {
                samples = try transcoder.transcode(sample)
            } catch {
                self.refuseAudio(error)
                self.interrupt(nowMs: nowMs)
                return false
            }
        }
        for sample in samples {
            do throws(FFmpegError) {
                try muxer.write(sample)
                if sample.kind == .audio { self.refusedSounds = 0 }
            } catch .library(_, _, let text) {
                // One sample that libavformat rejects must not cost the others.
                let cause = self.leftOut.refuse(sample.kind, by: muxer, text)
                if sample.kind == .audio { self.refusedSounds += 1 }
                guard self.refusedSounds >= StreamTracks.awaySamples else { continue }
                // A track without samples stalls players.
                self.tracks.refuseAudio(cause)
                self.interrupt(nowMs: nowMs)
                return false
            }
        }
        return true
    }

    /// The end of the sound of the run before, in a timeline whose container begins at `new` instead of at `old`.
    private func endOfSound(from old: Int64, to new: Int64) -> Int64? {
        guard let newest = self.newestSoundMs, let track = self.lastTracks.first(where: { $0.kind == .audio }) else { return nil }
        return newest + Int64((track.runMs ?? Double(Self.usualSoundMs)).rounded()) - old + new
    }

    /// Sound of the run before ends with the connection's last message, and that of this one begins behind its first picture. Chromium's own HLS player
    /// stops before the hole between them.
    private func fillSound(from startMs: Int64, to endMs: Int64) throws(FFmpegError) {
        guard self.silence == nil, self.transcoder == nil, endMs - startMs <= Self.announcedMs,
            let track = self.lastTracks.first(where: { $0.kind == .audio })
        else { return }
        for sample in SilentSound.samples(in: track, from: startMs, to: endMs) { try self.muxer?.write(sample) }
    }

    private func addSilence(before ms: Int64) throws(FFmpegError) {
        for sample in self.silence?.samples(before: ms) ?? [] { try self.muxer?.write(sample) }
    }

    /// Whether the sample's kind leads, that is, ends pieces: pictures, if there are any. Sound leads while a camera is off.
    private func noteLead(_ sample: Sample, _ tracks: [Track]) -> Bool {
        if sample.kind == .video {
            self.newestPictureMs = sample.dts
            return true
        }
        self.newestSoundMs = sample.dts
        guard tracks.contains(where: { $0.kind == .video }) else { return true }
        guard let last = self.newestPictureMs, self.tracks.soundsSincePicture >= StreamTracks.awaySamples else { return false }
        return sample.dts - last >= Self.awayMs
    }

    private func cutIfDue(_ sample: Sample, isKeyframe: Bool, nowMs: Int64) {
        guard var start = self.pieceStartMs, let last = self.lastLeadMs else { return }
        // The newest picture lasts until this one. It begins the next piece if it makes this one too long.
        if last > start, sample.kind == .video, self.leadKind == .video, let most = self.taker.longestMs, sample.dts - start > most {
            self.cut(before: nil, keptMs: last, nowMs: nowMs)
            start = last
        }
        let isDue = self.taker.isDue(pendingMs: sample.dts - start, frameMs: max(0, sample.dts - last), isKeyframe: isKeyframe)
        if isDue { self.cut(before: sample, nowMs: nowMs) }
    }

    /// `keptMs`: the time of the newest picture, which the next piece begins with; nil: it is in this piece.
    private func cut(before next: Sample?, keptMs: Int64? = nil, isCutShort: Bool = false, nowMs: Int64) {
        guard let muxer = self.muxer else { return }
        do throws(FFmpegError) {
            let keepsKeyframe = keptMs != nil && self.isNewestKeyframe
            let hadKeyframe = self.hasKeyframe && !keepsKeyframe
            if self.pieceStartMs != nil { try self.addSilence(before: next?.dts ?? keptMs ?? self.runEndMs) }
            self.pieceStartMs = keptMs
            self.hasKeyframe = keepsKeyframe
            let lost = muxer.lostSamples
            let flushed = try muxer.flush(before: next, keepsPicture: keptMs != nil)
            if muxer.lostSamples > lost, let kind = muxer.lostKind { self.leftOut.refuse(kind, muxer.lostSamples - lost, by: muxer) }
            guard var fragment = flushed else { return }
            // The piece ends with its pictures, unless sound has continued alone.
            if let next, next.kind == .audio, self.isInRun(.video) { fragment.endMs = max(fragment.endMs, next.dts) }
            self.nextSequenceNumber = muxer.nextSequenceNumber
            self.taker.made(
                Piece(
                    fragment: fragment, holdsKeyframe: hadKeyframe || fragment.isIndependent, wallMs: fragment.startMs + self.wallOffsetMs,
                    isCutShort: isCutShort),
                nowMs: nowMs)
        } catch {
            self.fail(error, nowMs: nowMs)
        }
    }

    /// What follows a players' run begins behind its last sound: its last picture lasts until then. Nil: as long as the one before.
    private var endOfRun: Sample? {
        guard !self.rebases, self.isInRun(.video), let newest = self.newestMs, self.newestSoundMs != nil else { return nil }
        let ms = self.runEndMs
        guard (0...Self.announcedMs).contains(ms - newest) else { return nil }
        return Sample(kind: .video, dts: ms, pts: ms, isKeyframe: false, payload: ByteBuffer())
    }

    private func interrupt(nowMs: Int64) {
        self.cut(before: self.endOfRun, nowMs: nowMs)
        self.discard(nowMs: nowMs)
    }

    /// Discards the muxer after an error; the next keyframe makes a new one.
    private func fail(_ error: FFmpegError, nowMs: Int64) {
        self.leftOut.list("\(error)")
        for case let track? in [self.tracks.video, self.tracks.audio] { self.leftOut.note(track.kind, "\(error)") }
        self.hasLost = true
        self.discard(nowMs: nowMs)
    }

    private func discard(nowMs: Int64) {
        self.keepLead()
        self.muxer = nil
        self.transcoder = nil
        self.held = HeldFrames()
        self.lateSounds = HeldFrames()
        self.taker.interrupted(nowMs: nowMs)
    }

    private func keepLead() { self.leadMs = max(self.leadMs, self.muxer?.leadMs ?? 0) }
}
