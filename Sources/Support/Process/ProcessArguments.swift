import LibC

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The words that this process was started with, the program's name first.
package enum ProcessArguments {
    /// Read once, at the start.
    ///
    /// Swift looks for them in memory, in front of the environment. That has moved when a preloaded library has set a variable (setenv(3)), and Swift then
    /// finds none. The kernel knows them in any case.
    package static let atStart: [String] = {
        // Without procfs Swift's are all that there is.
        let kernel = try? Data(contentsOf: URL(fileURLWithPath: "/proc/self/cmdline"))
        return Self.settled(kernel: kernel.map { Self.words($0) } ?? [], swift: CommandLine.arguments)
    }()

    /// The kernel's words, unless it has others in front: those of a loader or an emulator that runs the program.
    static func settled(kernel: [String], swift: [String]) -> [String] {
        let isBehindOthers = !swift.isEmpty && kernel.count > swift.count && Array(kernel.suffix(swift.count)) == swift
        return kernel.isEmpty || isBehindOthers ? swift : kernel
    }

    /// The words in proc(5)'s cmdline: each ends with a zero byte.
    static func words(_ bytes: some Sequence<UInt8>) -> [String] {
        var words = Array(bytes).split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
        // Behind the last zero.
        if words.last == "" { words.removeLast() }
        return words
    }
}
