import LibC
import NIOPosix

/// Ends the process when an orderly shutdown takes too long. Uses its own thread, so that nothing that is stuck can delay it.
enum WatchdogThread {
    static func endProcess(after duration: Duration) {
        let milliseconds = duration.components.seconds * 1_000 + duration.components.attoseconds / 1_000_000_000_000_000
        let thread = NIOThreadPool(numberOfThreads: 1)
        thread.start()
        thread.submit { _ in
            usleep(UInt32(milliseconds * 1_000))
            exit(0)
        }
    }
}
