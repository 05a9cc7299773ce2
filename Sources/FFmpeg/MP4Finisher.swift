internal import CFFmpeg
import LibC

/// Turns a fragmented recording into a seekable MP4 file with one index in front.
///
/// Works on the caller's thread and blocks on the disk; memory grows with the number of samples (about 100 bytes each).
package enum MP4Finisher {
    /// The result of a finished file. A plain value.
    package struct Finished: Sendable, Equatable {
        /// Bytes of the new file.
        package var bytes: Int64
        package var durationMs: Int64
        package var packets: Int
        /// Bytes of an incomplete fragment at the source's end.
        package var lostBytes: Int64
    }

    /// Reads `source`, and replaces `destination` once the new file is whole and on the disk. Until then the new file is `destination`
    /// + ".tmp", which is removed on failure. `source` stays.
    ///
    /// `progress` receives the bytes read and to be read, about once a megabyte and again while the index moves to the front; returning
    /// false cancels. Throws `.cancelled`, `.file` for system errors, `.media` without a whole fragment, `.library` otherwise.
    package static func finish(
        _ source: String, to destination: String, progress: (_ doneBytes: Int64, _ totalBytes: Int64) -> Bool = { _, _ in true }
    ) throws(FFmpegError) -> Finished {
        let input = try FragmentedSource(source)
        let temporary = destination + ".tmp"
        do throws(FFmpegError) {
            var finished = try Self.remux(input, temporary, progress)
            try FileSystem.sync(temporary)
            guard rename(temporary, destination) == 0 else { throw .file(operation: "rename to", path: destination, errno: errno) }
            try FileSystem.syncDirectory(of: destination)
            var status = stat()
            finished.bytes = stat(destination, &status) == 0 ? Int64(status.st_size) : 0
            return finished
        } catch {
            unlink(temporary)
            throw error
        }
    }

    private static func remux(
        _ input: FragmentedSource, _ path: String, _ progress: (Int64, Int64) -> Bool
    ) throws(FFmpegError) -> Finished {
        let result: Result<Finished, FFmpegError> = withoutActuallyEscaping(progress) { progress in
            let watch = Watch(total: input.wholeBytes, progress)
            // Keeps `watch` alive as long as the output, which asks it while writing.
            return withExtendedLifetime(watch) {
                do throws(FFmpegError) {
                    let output = try FileOutput(path, watch)
                    return .success(try Self.copy(input, output, watch))
                } catch {
                    return .failure(watch.isCancelled ? .cancelled : error)
                }
            }
        }
        return try result.get()
    }

    private static func copy(_ input: FragmentedSource, _ output: FileOutput, _ watch: Watch) throws(FFmpegError) -> Finished {
        let count = Int(input.context.pointee.nb_streams)
        for index in 0..<count {
            guard let from = input.context.pointee.streams[index] else { continue }
            try output.addStream(like: from)
        }
        try output.writeHeader()
        let packet = try Packet()
        var finished = Finished(bytes: 0, durationMs: 0, packets: 0, lostBytes: input.fileBytes - input.wholeBytes)
        var reported: Int64 = 0
        var last = [Int64?](repeating: nil, count: count)
        var steps = [Int64](repeating: .max, count: count)
        while true {
            let code = av_read_frame(input.context, packet.pointer)
            if code == earshot_error_eof { break }
            try check(code, "av_read_frame")
            let index = Int(packet.pointer.pointee.stream_index)
            guard index < count, let from = input.context.pointee.streams[index]?.pointee.time_base else { continue }
            // FFmpeg 5.1 drops the durations of samples with a composition time, though the fragments hold them. Decode times give all
            // but the last, which gets the previous one's duration; a sample after a pause does not last as long as the pause.
            let dts = packet.pointer.pointee.dts
            let step = last[index].map { max(0, dts &- $0) } ?? 0
            if packet.pointer.pointee.duration <= 0 { packet.pointer.pointee.duration = min(step, steps[index]) }
            if step > 0 { steps[index] = step }
            last[index] = dts
            let end = dts &+ packet.pointer.pointee.duration
            finished.durationMs = max(finished.durationMs, av_rescale_q(end, from, AVRational(num: 1, den: 1_000)))
            finished.packets += 1
            try output.write(packet, timeBase: from)
            if input.position - reported >= 1 << 20 {
                reported = input.position
                guard watch.goesOn(reported) else { throw .cancelled }
            }
        }
        guard watch.goesOn(input.wholeBytes) else { throw .cancelled }
        try output.finish()
        return finished
    }

    /// Asks `progress` whether to continue, and remembers a refusal. libav holds it unretained.
    final class Watch {
        private(set) var isCancelled = false
        private let total: Int64
        private var done: Int64 = 0
        private let progress: (Int64, Int64) -> Bool

        init(total: Int64, _ progress: @escaping (Int64, Int64) -> Bool) {
            self.total = total
            self.progress = progress
        }

        func goesOn(_ done: Int64? = nil) -> Bool {
            if let done { self.done = done }
            if !self.isCancelled { self.isCancelled = !self.progress(self.done, self.total) }
            return !self.isCancelled
        }
    }
}
