import Foundation
import TestSupport

/// A certificate authority and its certificates, made with openssl.
struct Certificates: Sendable {
    struct Pair: Sendable {
        let certificate: String
        let key: String
    }

    let directory: URL
    var authority: String { self.path("authority.pem") }

    private func path(_ name: String) -> String { self.directory.appendingPathComponent(name).path }

    static func make(in directory: URL) async throws -> Certificates {
        let made = Certificates(directory: directory)
        try await Self.openssl([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj",
            "/CN=Test authority",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign", "-keyout",
            made.path("authority.key"),
            "-out", made.authority,
        ])
        return made
    }

    /// `names`: "DNS:localhost,IP:127.0.0.1"; `days` may be in the past: -1 ended yesterday.
    func pair(_ file: String, names: String, days: Int = 30) async throws -> Pair {
        let made = Pair(certificate: self.path("\(file).pem"), key: self.path("\(file).key"))
        let request = self.path("\(file).csr")
        try await Self.openssl([
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=\(file)", "-keyout", made.key,
            "-out",
            request,
        ])
        try Data("subjectAltName=\(names)\n".utf8).write(to: URL(fileURLWithPath: self.path("\(file).ext")))
        try await Self.openssl([
            "x509", "-req", "-in", request, "-CA", self.authority, "-CAkey", self.path("authority.key"), "-CAcreateserial", "-days",
            "\(days)",
            "-extfile", self.path("\(file).ext"), "-out", made.certificate,
        ])
        return made
    }

    private static func openssl(_ arguments: [String]) async throws {
        let outcome = try await ClientProcess.run(["openssl"] + arguments)
        guard outcome.status == 0 else { throw TimedOut(description: "openssl \(arguments): \(outcome.errors)") }
    }
}

/// A TLS server in front of a plain one, in Python: its ssl module is another user of the same library.
struct TLSFront: Sendable {
    let port: Int
    /// Prints each connection's server name on a line; "None" without a name.
    let process: ClientProcess

    private static let script = """
        import asyncio, ssl, sys
        port, target, certificate, key, host, least = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:7]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if least == "old":
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
            context.set_ciphers("ALL:@SECLEVEL=0")
        context.sni_callback = lambda socket, name, _: print("name", name, flush=True)
        async def copy(reader, writer):
            try:
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
            except OSError:
                pass
            finally:
                writer.close()
        async def serve(reader, writer):
            try:
                back, forth = await asyncio.open_connection("127.0.0.1", target)
            except OSError:
                writer.close()
                return
            await asyncio.gather(copy(reader, forth), copy(back, writer))
        async def main():
            server = await asyncio.start_server(serve, host, port, ssl=context)
            print("listening", flush=True)
            await server.serve_forever()
        asyncio.run(main())
        """

    static func run<Result>(
        to target: Int, _ pair: Certificates.Pair, host: String = "127.0.0.1", old: Bool = false, _ body: (TLSFront) async throws -> Result
    ) async throws -> Result {
        let port = try await FreePort.reserve(host: host)
        let arguments = ["python3", "-c", Self.script, "\(port)", "\(target)", pair.certificate, pair.key, host, old ? "old" : "new"]
        return try await ClientProcess.during(arguments) { process in
            try await eventually("the TLS front") {
                guard process.isRunning else { throw TimedOut(description: "python: \(process.errorsSoFar)") }
                return String(decoding: process.outputSoFar, as: UTF8.self).contains("listening")
            }
            return try await body(TLSFront(port: port, process: process))
        }
    }

    var names: [String] {
        String(decoding: self.process.outputSoFar, as: UTF8.self).split(separator: "\n").filter { $0.hasPrefix("name ") }.map {
            String($0.dropFirst(5))
        }
    }
}
