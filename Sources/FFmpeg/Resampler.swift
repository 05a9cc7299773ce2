internal import CFFmpeg

/// Converts decoded audio to one rate and one or two channels. More channels are mixed down.
///
/// Owned by one consumer, used on one thread at a time. When the input's format changes it restarts, with a seam of about a millisecond.
package final class Resampler {
    /// Hz.
    package let sampleRate: Int
    package let channels: Int
    private var context: OpaquePointer?
    private var form: (rate: Int, channels: Int) = (0, 0)
    /// Channels that libav returns; between one and two, ``PCM/mixed(to:)`` does the mixing.
    private var mixedChannels = 0

    /// Accepted input rates in Hz. A header can say 1, and each sample would become as many as the output rate.
    package static let rates = 4_000...768_000

    /// `channels` is 1 or 2, `sampleRate` 8,000…192,000; other values are clamped.
    package init(sampleRate: Int = 48_000, channels: Int) {
        self.sampleRate = min(max(sampleRate, 8_000), 192_000)
        self.channels = min(max(channels, 1), 2)
    }

    deinit { swr_free(&self.context) }

    /// Throws `.unsupported` for a rate outside ``rates``.
    package func convert(_ pcm: PCM) throws(FFmpegError) -> PCM {
        guard pcm.count > 0 else { return PCM(silence: 0, sampleRate: self.sampleRate, channels: self.channels) }
        if pcm.sampleRate == self.sampleRate, pcm.channels <= 2, self.context == nil { return pcm.mixed(to: self.channels) }
        guard Self.rates.contains(pcm.sampleRate) else { throw .unsupported("resampling from \(pcm.sampleRate) Hz") }
        if self.context == nil || self.form != (pcm.sampleRate, pcm.channels) { try self.open(pcm) }
        return try self.run(pcm.planes, pcm.count)
    }

    /// Returns the samples that the filter still holds; nil when there are none.
    package func flush() throws(FFmpegError) -> PCM? {
        guard self.context != nil else { return nil }
        let rest = try self.run([], 0)
        swr_free(&self.context)
        return rest.count > 0 ? rest : nil
    }

    private func open(_ pcm: PCM) throws(FFmpegError) {
        swr_free(&self.context)
        self.form = (pcm.sampleRate, pcm.channels)
        // libav attenuates mono by 3 dB on the way to stereo. So between one and two channels the planes are mixed here.
        self.mixedChannels = pcm.channels <= 2 ? pcm.channels : self.channels
        var from = AVChannelLayout()
        var to = AVChannelLayout()
        av_channel_layout_default(&from, Int32(pcm.channels))
        av_channel_layout_default(&to, Int32(self.mixedChannels))
        defer {
            av_channel_layout_uninit(&from)
            av_channel_layout_uninit(&to)
        }
        try check(
            swr_alloc_set_opts2(
                &self.context, &to, AV_SAMPLE_FMT_FLTP, Int32(self.sampleRate), &from, AV_SAMPLE_FMT_FLTP, Int32(pcm.sampleRate), 0, nil),
            "swr_alloc_set_opts2")
        try check(swr_init(self.context), "swr_init (\(pcm.channels) channels, \(pcm.sampleRate) Hz)")
    }

    private func run(_ planes: [[Float]], _ count: Int) throws(FFmpegError) -> PCM {
        let room = Int(try check(swr_get_out_samples(self.context, Int32(count)), "swr_get_out_samples"))
        var output = PCM(silence: room, sampleRate: self.sampleRate, channels: self.mixedChannels)
        let got = Planes.lend(planes) { from in
            Planes.lend(&output.planes) { to in
                swr_convert(self.context, to, Int32(room), count > 0 ? from : nil, Int32(count))
            }
        }
        try check(got, "swr_convert")
        for index in output.planes.indices { output.planes[index].removeLast(room - Int(got)) }
        return output.mixed(to: self.channels)
    }
}

/// Lends planes of samples to C functions, which expect an array of pointers.
enum Planes {
    typealias Input = UnsafeMutablePointer<UnsafePointer<UInt8>?>
    typealias Output = UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>

    static func lend(_ planes: [[Float]], _ body: (Input) -> Int32) -> Int32 {
        var pointers: [UnsafePointer<UInt8>?] = []
        return Self.lend(planes[...], &pointers, body)
    }

    private static func lend(_ planes: ArraySlice<[Float]>, _ pointers: inout [UnsafePointer<UInt8>?], _ body: (Input) -> Int32) -> Int32 {
        guard let plane = planes.first else {
            if pointers.isEmpty { pointers.append(nil) }
            return pointers.withUnsafeMutableBufferPointer { $0.baseAddress.map(body) ?? earshot_error_invalid_data }
        }
        return plane.withUnsafeBytes { bytes in
            pointers.append(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
            return Self.lend(planes.dropFirst(), &pointers, body)
        }
    }

    static func lend(_ planes: inout [[Float]], _ body: (Output) -> Int32) -> Int32 {
        // One or two channels.
        guard var first = planes.first else { return earshot_error_invalid_data }
        var second = planes.count > 1 ? planes[1] : []
        planes = []
        let hasSecond = !second.isEmpty
        let code = first.withUnsafeMutableBytes { first in
            second.withUnsafeMutableBytes { second in
                var pointers = [first.baseAddress, second.baseAddress].map { $0?.assumingMemoryBound(to: UInt8.self) }
                return pointers.withUnsafeMutableBufferPointer { $0.baseAddress.map(body) ?? earshot_error_invalid_data }
            }
        }
        planes = hasSecond ? [first, second] : [first]
        return code
    }
}
