import FFmpeg
import Media
import NIOCore

extension FuzzTarget {
    /// Muxes a stream into the containers of HLS and the recorder. Every piece is complete.
    static let muxer = FuzzTarget("muxer", maxLength: 8_192, allocationMiB: 16, timeoutSeconds: 10) { input in
        var input = input
        var run = MuxerRun(format: input.byte() & 1 == 0 ? .fmp4 : .mpegTS)
        for record in MediaRecords(input) { run.receive(record) }
        run.end()
    }
}

private struct MuxerRun {
    let format: ContainerFormat
    private var tracks: [Track] = []
    private var muxer: FragmentMuxer?
    private var made = 0
    private static let mostMuxers = 8

    init(format: ContainerFormat) { self.format = format }

    mutating func receive(_ record: MediaRecords.Record) {
        if Track.describes(record.frame) { self.note(record.frame) }
        guard let sample = Sample(record.frame), let muxer = self.begin() else { return }
        if record.flags & 1 != 0 { self.flush(before: sample, keepsPicture: record.flags & 2 != 0) }
        do throws(FFmpegError) {
            try muxer.write(sample)
        } catch .timestampJump {
            self.end()
        } catch {
            switch error {
            case .library, .overLimit: break
            default: fatalError("\(error)")
            }
        }
    }

    mutating func end() {
        self.flush(before: nil, keepsPicture: false)
        self.muxer = nil
    }

    private mutating func note(_ frame: Frame) {
        do throws(FFmpegError) {
            let track = try Track(frame)
            guard !self.tracks.contains(track), track.isSupported(in: self.format) else { return }
            expect(track.kind == .audio || (1...1 << 16).contains(track.width) && (1...1 << 16).contains(track.height), "\(track)")
            self.tracks = (self.tracks.filter { $0.kind != track.kind } + [track]).sorted { $0.kind.rawValue > $1.kind.rawValue }
            self.end()
        } catch {
            expect(!"\(error)".isEmpty, "an error without words")
        }
    }

    private mutating func begin() -> FragmentMuxer? {
        guard self.muxer == nil, !self.tracks.isEmpty, self.made < Self.mostMuxers else { return self.muxer }
        self.made += 1
        do throws(FFmpegError) {
            let muxer = try FragmentMuxer(tracks: self.tracks, format: self.format, outlivesTracks: true)
            if self.format == .fmp4 { expect(boxes(muxer.initialization) == ["ftyp", "moov"], "\(boxes(muxer.initialization))") }
            expect(!muxer.mimeType.isEmpty, "no type")
            self.muxer = muxer
        } catch {
            // libav may reject headers that we accept.
            guard case .library = error else { fatalError("\(error)") }
        }
        return self.muxer
    }

    private func flush(before sample: Sample?, keepsPicture: Bool) {
        guard let muxer = self.muxer else { return }
        do throws(FFmpegError) {
            guard let fragment = try muxer.flush(before: sample, keepsPicture: keepsPicture) else { return }
            expect(fragment.durationMs >= 0 && fragment.samples > 0, "\(fragment.samples) samples in \(fragment.durationMs) ms")
            switch self.format {
            case .fmp4: expect(boxes(fragment.bytes) == ["moof", "mdat"], "\(boxes(fragment.bytes))")
            case .mpegTS:
                let bytes = Array(fragment.bytes.readableBytesView)
                expect(bytes.count % 188 == 0, "\(bytes.count) bytes of TS")
                for start in stride(from: 0, to: bytes.count, by: 188) { expect(bytes[start] == 0x47, "no sync byte at \(start)") }
            }
        } catch {
            guard case .library = error else { fatalError("\(error)") }
        }
    }
}

/// The types of the boxes (ISO/IEC 14496-12 §4.2) that fill these bytes exactly.
private func boxes(_ bytes: ByteBuffer) -> [String] {
    var bytes = bytes
    var types: [String] = []
    while let size = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self) {
        guard size >= 8, var box = bytes.readSlice(length: Int(size)) else { return types + ["?"] }
        box.moveReaderIndex(forwardBy: 4)
        types.append(box.readString(length: 4) ?? "?")
    }
    return bytes.readableBytes == 0 ? types : types + ["?"]
}
