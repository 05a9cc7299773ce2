import LibC

/// The command line: `earshot-fuzz TARGET [libFuzzer's options, corpora and inputs]`, or `earshot-fuzz list`.
///
/// Runs on libFuzzer's only thread.
enum FuzzProgram {
    typealias Words = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

    private nonisolated(unsafe) static var chosen: FuzzTarget?
    /// The arguments that libFuzzer reads its options from.
    private nonisolated(unsafe) static var words: Words?
    /// The variable that names the target. To merge, libFuzzer starts itself again with its own options only.
    private static let variable = "EARSHOT_FUZZ_TARGET"

    static func choose(_ count: UnsafeMutablePointer<CInt>, _ given: UnsafeMutablePointer<Words?>) {
        var words = CommandLine.arguments
        if words.count > 1, !words[1].hasPrefix("-") { setenv(Self.variable, words.remove(at: 1), 1) }
        let name = getenv(Self.variable).map { String(cString: $0) } ?? "list"
        guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
            let names = FuzzTarget.all.map(\.name)
            print(name == "list" ? names.joined(separator: "\n") : "no target \(name); expected one of \(names.joined(separator: ", "))")
            exit(name == "list" ? 0 : 2)
        }
        Self.chosen = target
        // Precede the caller's options, which override them.
        words.insert(
            contentsOf: [
                "-max_len=\(target.maxLength)", "-malloc_limit_mb=\(target.allocationMiB)", "-timeout=\(target.timeoutSeconds)",
                "-rss_limit_mb=2560",
            ], at: min(1, words.count))
        let memory = Words.allocate(capacity: words.count + 1)
        for (index, word) in words.enumerated() { memory[index] = strdup(word) }
        memory[words.count] = nil
        Self.words = memory
        count.pointee = CInt(words.count)
        given.pointee = memory
    }

    static func receive(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
        Self.chosen?.run(FuzzInput(Array(UnsafeBufferPointer(start: bytes, count: count))))
        return 0
    }

    static func run() -> Never {
        var count = CommandLine.argc
        var words: Words? = CommandLine.unsafeArgv
        exit(runDriver(&count, &words) { FuzzProgram.receive($0, $1) })
    }
}

/// Called by libFuzzer before it reads its options.
@_cdecl("LLVMFuzzerInitialize")
func initializeFuzzer(_ count: UnsafeMutablePointer<CInt>, _ words: UnsafeMutablePointer<FuzzProgram.Words?>) -> CInt {
    FuzzProgram.choose(count, words)
    return 0
}

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func receiveInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    FuzzProgram.receive(bytes, count)
}

/// libFuzzer's C driver. Its parameters are only pointers and integers, which Swift passes as C does.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ words: UnsafeMutablePointer<FuzzProgram.Words?>,
    _ receive: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt
