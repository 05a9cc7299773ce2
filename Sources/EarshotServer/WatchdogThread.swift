import LibC
import NIOPosix

/// Does what has to be done when an orderly shutdown takes too long. Uses its own thread, so that nothing that is stuck can delay it.
enum WatchdogThread {
    static func run(after duration: Duration, _ work: @escaping @Sendable () -> Void) {
        let milliseconds = duration.components.seconds * 1_000 + duration.components.attoseconds / 1_000_000_000_000_000
        let thread = NIOThreadPool(numberOfThreads: 1)
        thread.start()
        thread.submit { _ in
            usleep(UInt32(milliseconds * 1_000))
            work()
        }
    }
}
