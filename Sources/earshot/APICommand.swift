import ArgumentParser
import EarshotServer
import HTTPAPI

/// `earshot api`: describes the API, without a running server.
struct APICommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "api", abstract: "Print the description of the HTTP API.", subcommands: [Document.self, Reference.self])

    struct Document: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the OpenAPI 3.1 document, which a running server has at /api/v1/openapi.json.")

        func run() { print(String(decoding: OpenAPIDocument.bytes, as: UTF8.self)) }
    }

    struct Reference: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the reference of all calls as Markdown: inputs, answers, events, types.")

        func run() { print(APIReference.markdown, terminator: "") }
    }
}
