#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The system's, whose name the console's own hides.
private func unistdWrite(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int { write(descriptor, bytes, count) }

/// Standard output and error of the commands. Unbuffered, so that a line is seen (or in the pipe) when it is printed.
enum Console {
    /// Whoever read the output has closed it.
    struct ReaderGone: Error {}

    static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Columns of the terminal on standard output; nil for files and pipes, where nothing is cut.
    static var width: Int? {
        guard self.isTerminal else { return nil }
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// On a terminal only, and not when https://no-color.org says no.
    static let usesColour: Bool = isTerminal && (Self.variable("NO_COLOR") ?? "").isEmpty && Self.variable("TERM") != "dumb"

    /// Of the environment; nil when unset.
    static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    /// - Throws: ``ReaderGone``, or a ``CommandFailure`` such as for a full disk.
    static func print(_ line: String, end: String = "\n") throws {
        if let error = self.write(line + end, to: STDOUT_FILENO) {
            if error == EPIPE { throw ReaderGone() }
            throw CommandFailure(.failed, "cannot write the output: \(Self.explain(error))")
        }
    }

    /// A hint, a note or an error: on standard error, so that standard output holds nothing but the answer.
    static func complain(_ line: String) {
        // What cannot be said there cannot be said anywhere.
        _ = self.write(line + "\n", to: STDERR_FILENO)
    }

    /// In words, as the system's tools write it: "connection refused".
    static func explain(_ error: CInt) -> String {
        let text = String(cString: strerror(error))
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// The error number, or nil when everything is written.
    private static func write(_ text: String, to descriptor: CInt) -> CInt? {
        var text = text
        return text.withUTF8 { bytes in
            var done = 0
            while done < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[done...])
                let count = unistdWrite(descriptor, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                if count < 0 { return errno }
                done += count
            }
            return nil
        }
    }

    /// Whether whoever read standard output has closed it: for commands that may have nothing to write for long.
    static var isReaderGone: Bool {
        // Without any flag only errors and hang-ups are told.
        var descriptor = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&descriptor, 1, 0) > 0 && descriptor.revents & Int16(POLLERR | POLLHUP) != 0
    }

    /// A closed pipe is an error of `write` from now on, not the process's end.
    static func ignoreClosedPipes() {
        signal(SIGPIPE, SIG_IGN)
    }
}
