internal import CLibRTMP
import LibC

/// A system thread for blocking code, apart from the event loops and the cooperative pool.
struct LinkThread: Sendable {
    private let id: ThreadID

    // pthread_t is an opaque number or pointer that only pthread calls read.
    private struct ThreadID: @unchecked Sendable { let value: pthread_t }

    private final class Body {
        let run: @Sendable () -> Void
        let name: String
        init(_ run: @escaping @Sendable () -> Void, name: String) {
            self.run = run
            self.name = name
        }
    }

    /// Bytes. librtmp keeps its handshake on the stack, OpenSSL some more. The link itself has no deep calls.
    private static let stackBytes = 512 << 10

    /// Starts at once; nil when the system has no thread left. `name` is cut to 15 bytes. Detached unless `joinable`.
    init?(name: String, joinable: Bool = false, _ run: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, Self.stackBytes)
        if !joinable { pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED)) }
        let body = Unmanaged.passRetained(Body(run, name: name))
        #if canImport(Darwin)
        var id: pthread_t?
        #else
        var id = pthread_t()
        #endif
        let code = pthread_create(&id, &attributes, { Self.enter($0) }, body.toOpaque())
        guard code == 0 else {
            body.release()
            return nil
        }
        #if canImport(Darwin)
        guard let id else { return nil }
        #endif
        self.id = ThreadID(value: id)
    }

    #if canImport(Darwin)
    private static func enter(_ argument: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? { Self.enter(some: argument) }
    #else
    private static func enter(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? { argument.flatMap(Self.enter(some:)) }
    #endif

    private static func enter(some argument: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
        earshot_name_thread(body.name)
        System.blockBrokenPipeSignal()
        body.run()
        return nil
    }

    /// Waits for a `joinable` thread to end; call it once.
    func join() { pthread_join(self.id.value, nil) }
}
