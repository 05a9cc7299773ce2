internal import CLibRTMP
import LibC
internal import Synchronization

/// librtmp's own log: silent until a handler is set.
///
/// Only errors are passed on. From warnings downward librtmp logs sent and received data, names and keys included.
package enum LibRTMPLog {
    private struct Handler {
        var body: (@Sendable (String) -> Void)?
    }

    private static let handler = Mutex(Handler())

    /// Sets the handler for error lines of all links; nil for none. Called on the links' threads. Lines contain no stream name or key.
    package static func setHandler(_ new: (@Sendable (String) -> Void)?) { self.handler.withLock { $0.body = new } }

    /// Call once before librtmp's first use.
    static func install() {
        RTMP_LogSetLevel(RTMP_LOGERROR)
        RTMP_LogSetCallback { level, format, arguments in
            guard level <= Int32(RTMP_LOGERROR.rawValue), let format, let arguments else { return }
            guard let handler = LibRTMPLog.handler.withLock({ $0.body }) else { return }
            var line = [CChar](repeating: 0, count: 256)
            guard vsnprintf(&line, line.count, format, arguments) > 0 else { return }
            handler(String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
    }
}
