internal import CFFmpeg
package import Media

/// A failure in a container, a codec or a media file, with its cause.
///
/// Scope: the object that threw. Data written before remains.
package enum FFmpegError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A failed call into libav, with av_strerror's text.
    case library(operation: String, code: Int32, text: String)
    /// A header or frame that violates its specification; names the field.
    case media(MediaError)
    /// Sound media that its destination cannot hold: "FLAC in MPEG-TS".
    case unsupported(String)
    case overLimit(field: String, found: Int, max: Int)
    /// A sample's time is too far from its track's previous sample to follow it. Milliseconds.
    case timestampJump(kind: Frame.Kind, fromMs: Int64, toMs: Int64)
    /// A failed system call on a file.
    case file(operation: String, path: String, errno: Int32)
    /// The caller gave up the operation.
    case cancelled

    package var description: String {
        switch self {
        case .library(let operation, _, let text): "\(text), in \(operation)"
        case .media(let error): "\(error)"
        case .unsupported(let what): "\(what) is not supported"
        case .overLimit(let field, let found, let max): "\(field) is \(found), at most \(max) accepted"
        case .timestampJump(let kind, let from, let to): "\(kind) timestamps jump from \(from) ms to \(to) ms"
        case .file(let operation, let path, let errno): "\(operation) \(path): \(Self.text(earshot_error(errno)))"
        case .cancelled: "cancelled"
        }
    }

    /// av_strerror's text for a libav error code.
    static func text(_ code: Int32) -> String {
        var characters = [UInt8](repeating: 0, count: 256)
        characters.withUnsafeMutableBytes { bytes in
            _ = av_strerror(code, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count)
        }
        return String(decoding: characters.prefix { $0 != 0 }, as: UTF8.self)
    }
}

/// Returns the result of a libav call, or throws when it is an error.
@discardableResult
func check(_ code: Int32, _ operation: @autoclosure () -> String) throws(FFmpegError) -> Int32 {
    guard code < 0 else { return code }
    throw .library(operation: operation(), code: code, text: FFmpegError.text(code))
}

/// Returns the result of a libav allocation, or throws when there was no memory.
func allocated<Pointer>(_ pointer: Pointer?, _ operation: @autoclosure () -> String) throws(FFmpegError) -> Pointer {
    guard let pointer else {
        throw .library(operation: operation(), code: earshot_error_no_memory, text: FFmpegError.text(earshot_error_no_memory))
    }
    return pointer
}

/// Runs `body` and wraps its `MediaError` in an `FFmpegError`.
func reading<Result>(_ body: () throws(MediaError) -> Result) throws(FFmpegError) -> Result {
    do throws(MediaError) {
        return try body()
    } catch {
        throw .media(error)
    }
}

/// Settings for the whole process, made once.
enum Library {
    /// Stops libav from writing to standard error. All relevant problems are returned as errors.
    static let quiet: Void = av_log_set_level(AV_LOG_QUIET)
}
