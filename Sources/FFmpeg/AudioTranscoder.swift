/// Turns audio that no container takes into AAC.
package final class AudioTranscoder {
    package let track: Track

    package init(_ track: Track) throws(FFmpegError) { throw .unsupported("\(track.codecsString) in fragmented MP4") }

    package func transcode(_ sample: Sample) throws(FFmpegError) -> [Sample] { [] }
}
