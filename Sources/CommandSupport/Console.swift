import LibC

/// The commands' standard output and error. Unbuffered, so that each line is visible (or in the pipe) at once.
package enum Console {
    /// The output's reader has closed the pipe.
    package struct ReaderGone: Error {}

    package static let isTerminal = isatty(STDOUT_FILENO) == 1
    package static let errorsAreOnTerminal = isatty(STDERR_FILENO) == 1

    /// The terminal's columns; nil for files and pipes, where nothing is cut.
    package static var width: Int? { self.isTerminal ? self.columns(of: STDOUT_FILENO) : nil }
    /// The columns of standard error's terminal.
    package static var errorWidth: Int? { self.errorsAreOnTerminal ? self.columns(of: STDERR_FILENO) : nil }

    /// COLUMNS takes precedence, as in other tools: it lets users choose another width. Serial terminals report no width.
    private static func columns(of descriptor: CInt) -> Int? {
        if let columns = self.variable("COLUMNS").flatMap(Int.init), (1...10_000).contains(columns) { return columns }
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Only on a terminal, and not when NO_COLOR (https://no-color.org) is set.
    package static let usesColour: Bool = isTerminal && (Self.variable("NO_COLOR") ?? "").isEmpty && Self.variable("TERM") != "dumb"

    /// An environment variable; nil when unset.
    package static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// - Throws: ``ReaderGone``, or a ``CommandFailure``, for example when the disk is full.
    package static func print(_ line: String, end: String = "\n") throws {
        if let error = self.write(line + end, to: STDOUT_FILENO) {
            if error == EPIPE { throw ReaderGone() }
            throw CommandFailure(.failed, "cannot write the output: \(Self.explain(error))")
        }
    }

    /// Prints a hint, a note or an error to standard error. Standard output holds only the answer. Escapes what peers may have put into it; only line
    /// ends stay.
    package static func complain(_ lines: String) {
        let safe = lines.split(separator: "\n", omittingEmptySubsequences: false).map { DisplayText.escaped(String($0)) }
        // An error of standard error itself cannot be reported anywhere.
        _ = self.write(safe.joined(separator: "\n") + "\n", to: STDERR_FILENO)
    }

    /// Prints to standard error without a line end, for text that will be overwritten.
    package static func hint(_ text: String) { _ = self.write(text, to: STDERR_FILENO) }

    /// The error's text as the system's tools print it: "connection refused".
    package static func explain(_ error: CInt) -> String {
        let text = errorText(error)
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// Returns the error number, or nil when everything is written.
    private static func write(_ text: String, to descriptor: CInt) -> CInt? {
        var text = text
        return text.withUTF8 { bytes in
            var done = 0
            while done < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[done...])
                let count = LibC.write(descriptor, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                if count < 0 { return errno }
                done += count
            }
            return nil
        }
    }

    /// Whether the reader of standard output has closed it. For commands that may print nothing for long.
    package static var isReaderGone: Bool {
        // Without requested events poll reports only errors and hang-ups.
        var descriptor = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&descriptor, 1, 0) > 0 && descriptor.revents & Int16(POLLERR | POLLHUP) != 0
    }

    /// Makes writes to a closed pipe fail instead of ending the process.
    package static func ignoreClosedPipes() { signal(SIGPIPE, SIG_IGN) }
}
