internal import CFFmpeg
package import Media

/// What failed in a container, a codec or a file of media, and with what.
///
/// Scope: the object that threw. What was written before stands.
package enum FFmpegError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A call into libav; the text is av_strerror's.
    case library(operation: String, code: Int32, text: String)
    /// A header or a frame that breaks its specification; names the field.
    case media(MediaError)
    /// Sound media that has no place where it was to go: "FLAC in MPEG-TS".
    case unsupported(String)
    case overLimit(field: String, found: Int, max: Int)
    /// A sample's time is too far from that of its track's sample before to be laid out behind it. Milliseconds.
    case timestampJump(kind: Frame.Kind, fromMs: Int64, toMs: Int64)
    /// A system call on a file.
    case file(operation: String, path: String, errno: Int32)
    /// Whoever asked for it wanted it no more.
    case cancelled

    package var description: String {
        switch self {
        case .library(let operation, let code, let text): "\(operation): \(text) (\(code))"
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

/// Gives back what a libav call returned, unless that is an error.
@discardableResult
func check(_ code: Int32, _ operation: @autoclosure () -> String) throws(FFmpegError) -> Int32 {
    guard code < 0 else { return code }
    throw .library(operation: operation(), code: code, text: FFmpegError.text(code))
}

/// Gives back what a libav call allocated, unless it had no memory.
func allocated<Pointer>(_ pointer: Pointer?, _ operation: @autoclosure () -> String) throws(FFmpegError) -> Pointer {
    guard let pointer else {
        throw .library(operation: operation(), code: earshot_error_no_memory, text: FFmpegError.text(earshot_error_no_memory))
    }
    return pointer
}

/// Runs what throws `MediaError`, as an `FFmpegError`.
func reading<Result>(_ body: () throws(MediaError) -> Result) throws(FFmpegError) -> Result {
    do throws(MediaError) {
        return try body()
    } catch {
        throw .media(error)
    }
}

/// What is set once for the whole process.
enum Library {
    /// libav writes to the standard error by itself; all that matters comes back as an error here.
    static let quiet: Void = av_log_set_level(AV_LOG_QUIET)
}
